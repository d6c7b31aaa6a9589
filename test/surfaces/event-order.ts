import type { SurfaceName } from "../../src/catalog/catalog.ts";
import { ChatOrder } from "./chat-order.ts";
import { MessagesOrder } from "./messages-order.ts";
import { ResponsesOrder } from "./responses-order.ts";
import { violations, type WireName } from "./wire-schema.ts";

/**
 * The rules by which each language orders the events of a stream, as machines that share no code with the
 * gateway. A machine lists what is broken; an empty list means that a client of the language can rely on every
 * event.
 */
export interface OrderMachine {
  readonly broken: string[];
  take(frame: Frame): void;
  /** The stream is over. */
  end(): void;
}

/** One server-sent event; comments are none. */
export interface Frame {
  readonly event: string | null;
  readonly data: string;
}

export interface OrderOptions {
  /** `stream_options.include_usage`. */
  readonly usage: boolean;
}

// biome-ignore lint/suspicious/noExplicitAny: frames are looked into freely; their shape is the schemas' to check.
export type Loose = any;

export function brokenRules(
  surface: SurfaceName,
  text: string,
  options: OrderOptions = { usage: false },
): string[] {
  const machine = MACHINES[surface](options);
  for (const frame of framesOf(text)) machine.take(frame);
  machine.end();
  return machine.broken;
}

const MACHINES: Readonly<Record<SurfaceName, (options: OrderOptions) => OrderMachine>> = {
  "chat.completions": (options) => new ChatOrder(options),
  responses: () => new ResponsesOrder(),
  messages: () => new MessagesOrder(),
};

export function framesOf(text: string): Frame[] {
  return text.split(/\r?\n\r?\n/).flatMap((block) => {
    const lines = block.split(/\r?\n/);
    const field = (name: string): string | null => {
      const found = lines.filter((line) => line.startsWith(`${name}:`));
      return found.length === 0 ? null : found.map((line) => line.slice(name.length + 1).trim()).join("\n");
    };
    const data = field("data");
    return data === null ? [] : [{ event: field("event"), data }];
  });
}

const EVENT_SCHEMA: Readonly<Record<SurfaceName, WireName>> = {
  "chat.completions": "chatChunk",
  responses: "responseEvent",
  messages: "messageEvent",
};

/** Every event of a stream against the types that the SDK package publishes. */
export function wrongEvents(
  surface: SurfaceName,
  text: string,
  by: "gateway" | "host" = "gateway",
): string[] {
  return framesOf(text).flatMap(({ data }) => {
    // The end mark is no JSON; pings and errors are not among the types.
    if (data === "[DONE]") return [];
    const value = JSON.parse(data);
    if (surface === "messages" && (value.type === "ping" || value.type === "error")) return [];
    if (surface === "chat.completions" && value.error !== undefined) return [];
    return violations(EVENT_SCHEMA[surface], value, by).map((sentence) => `${data}: ${sentence}`);
  });
}
