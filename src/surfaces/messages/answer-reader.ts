import { MAX_PARTS, TOO_MANY_PARTS } from "../events/answer-bounds.ts";
import { ENDED_EARLY, errorOf, fault, NO_EVENT, untypedError } from "../host-error.ts";
import { parseExactObject } from "../json/exact-json.ts";
import { asObject, asText, type Json } from "../json/json.ts";
import type { HostError, Usage } from "../surface.ts";
import { readAnthropicBeginning, readAnthropicUsage } from "../usage.ts";
import type {
  AnswerEvents,
  AnswerReader,
  OpenBlock,
  ReadOutcome,
  StopReason,
} from "../vocabulary/answer-events.ts";
import type { Seal } from "../vocabulary/conversation.ts";

/**
 * A messages host's events, read (docs.anthropic.com, "Streaming Messages"). Its blocks come one after
 * another.
 */
export class MessagesReader implements AnswerReader {
  private used: Usage | null = null;
  private open = false;
  private seal: Seal | null = null;
  /** A call whose input came with its start: hosts that do not stream it do so. */
  private wholeInput = "";
  private streamed = false;
  private stopped = false;
  private called = false;

  constructor(
    private readonly events: AnswerEvents,
    private readonly family: string,
  ) {}

  read(text: string | null): ReadOutcome {
    if (text === null) return "ping";
    const data = parseExactObject(text);
    if (data === null) return text.trim() === "" ? "more" : NO_EVENT;
    switch (data.type) {
      case "ping":
        return "ping";
      case "message_start": {
        const message = asObject(data.message) ?? {};
        this.used = readAnthropicBeginning(message.usage);
        this.events.start(typeof message.id === "string" ? message.id : null, this.used);
        return "more";
      }
      case "content_block_start":
        return this.start(asObject(data.content_block) ?? {});
      case "content_block_delta":
        this.more(asObject(data.delta) ?? {});
        return "more";
      case "content_block_stop":
        this.end();
        return "more";
      case "message_delta":
        this.used = readAnthropicUsage(data.usage, this.used);
        if (typeof asObject(data.delta)?.stop_reason === "string") this.end();
        if (this.used !== null && asObject(data.usage) !== null) this.events.usage(this.used);
        return this.stop(asObject(data.delta) ?? {});
      case "message_stop":
        // Some hosts give no reason to stop, and leave the last block open.
        this.end();
        if (!this.stopped) this.stop({ stop_reason: "end_turn" });
        return "end";
      case "error":
        return errorOf(data, "an error without a message");
      case undefined:
        return untypedError(data) ?? "more";
      default:
        return "more";
    }
  }

  close(): HostError {
    return ENDED_EARLY;
  }

  private start(block: Json): "more" | HostError {
    this.seal = null;
    this.wholeInput = "";
    this.streamed = false;
    switch (block.type) {
      case "text":
        this.begin({ kind: "text" }, block.text);
        return "more";
      case "thinking":
        this.begin({ kind: "reasoning" }, block.thinking);
        if (typeof block.signature === "string") this.sign(block.signature);
        return "more";
      case "redacted_thinking":
        this.begin({ kind: "reasoning" }, "");
        this.seal = { family: this.family, kind: "redacted", data: asText(block.data ?? "") };
        return "more";
      case "tool_use": {
        this.called = true;
        this.begin({ kind: "tool_call", id: asText(block.id), name: asText(block.name), custom: false }, "");
        const input = asObject(block.input) ?? {};
        if (Object.keys(input).length > 0) this.wholeInput = JSON.stringify(input);
        return "more";
      }
      default:
        return fault(`the host sent content of an unknown type, ${asText(block.type)}`);
    }
  }

  private begin(block: OpenBlock, text: unknown): void {
    if (this.open) this.end();
    this.open = true;
    this.events.open(block);
    if (typeof text === "string" && text !== "") this.events.delta(text);
  }

  private more(delta: Json): void {
    if (!this.open) return;
    if (typeof delta.signature === "string") this.sign(delta.signature);
    const text = delta.text ?? delta.thinking ?? delta.partial_json;
    if (typeof text !== "string" || text === "") return;
    this.streamed = true;
    this.events.delta(text);
  }

  private sign(signature: string): void {
    if (signature === "") return;
    const before = this.seal?.data ?? "";
    this.seal = { family: this.family, kind: "signature", data: before + signature };
  }

  private end(): void {
    if (!this.open) return;
    if (!this.streamed && this.wholeInput !== "") this.events.delta(this.wholeInput);
    this.open = false;
    this.events.close(this.seal);
  }

  private stop({ stop_reason: reason, stop_sequence: sequence }: Json): "more" | "stop" {
    if (typeof reason !== "string") return "more";
    this.end();
    this.stopped = true;
    this.events.stop(reasonOf(reason, this.called), typeof sequence === "string" ? sequence : null);
    return "stop";
  }
}

/**
 * Clients run the tools that the stop reason makes them wait for; some hosts end their turn with a call as with any
 * other block.
 */
function reasonOf(hostReason: unknown, called: boolean): StopReason {
  const reason = REASONS.get(hostReason) ?? "end";
  return reason === "end" && called ? "tools" : reason;
}

/** The stop reason of an answer that the host declined, or broke off for policy reasons. */
export const REFUSAL = "refusal";

/** The answer ended at a ceiling or a filter. */
export function isShort(hostReason: unknown): boolean {
  const reason = REASONS.get(hostReason);
  return reason === "length" || reason === "filter";
}

export const STOP_REASONS: Readonly<Record<StopReason, string>> = {
  end: "end_turn",
  sequence: "stop_sequence",
  tools: "tool_use",
  length: "max_tokens",
  filter: REFUSAL,
};

const REASONS: ReadonlyMap<unknown, StopReason> = new Map([
  ...Object.entries(STOP_REASONS).map(([reason, word]) => [word, reason as StopReason] as const),
  ["model_context_window_exceeded", "length"],
]);

/** It ended for policy reasons. */
export const isFiltered = ({ stop_reason: reason }: Json): boolean => reason === REFUSAL;

export function faultIn(json: Json): HostError | null {
  if (json.type === "error" || asObject(json.error) !== null)
    return errorOf(json, "an error without a message");
  if (!Array.isArray(json.content)) return fault("the answer has no content");
  return json.content.length > MAX_PARTS ? fault(TOO_MANY_PARTS) : null;
}
