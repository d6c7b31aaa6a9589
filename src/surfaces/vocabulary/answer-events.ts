import type { HostError, Usage } from "../surface.ts";
import type { Seal } from "./conversation.ts";

/**
 * A model's answer in no particular language: the answer half of the vocabulary. A host's reader calls these
 * in order, a client's writer turns them into its own frames: `start`, then blocks one after another (`open`,
 * `delta`s, `close`), then `stop`; `usage` whenever the host reports it. Calls instead of objects, because
 * there is one for every token.
 */
export interface AnswerEvents {
  /** `id` is the host's for the answer; usage is what it knew at the start. */
  start(id: string | null, usage: Usage | null): void;
  open(block: OpenBlock): void;
  /** More of the open block. */
  delta(text: string, logprobs?: readonly unknown[]): void;
  /** Cites in the open block, which is text. */
  cite(citation: Citation): void;
  /** A block of thoughts may have been sealed. */
  close(seal: Seal | null): void;
  usage(usage: Usage): void;
  stop(reason: StopReason, sequence: string | null): void;
}

export type OpenBlock =
  | { readonly kind: "text" | "refusal" | "reasoning" }
  | { readonly kind: "tool_call"; readonly id: string; readonly name: string; readonly custom: boolean };

/**
 * `end`: the model had said what it wanted; `tools`: it waits for results; `length`: the ceiling; `sequence`:
 * a stop sequence of the request; `filter`: the host's or the model's refusal to go on.
 */
export type StopReason = "end" | "tools" | "length" | "sequence" | "filter";

/** A page that a text rests on, and where in the text. */
export interface Citation {
  readonly url: string;
  readonly title: string;
  readonly start: number;
  readonly end: number;
}

/** Reads one host's streamed answer and passes it on as events. */
export interface AnswerReader {
  /** An event's data, null where it has none. */
  read(data: string | null): ReadOutcome;
  /** The host's body is over without an end mark: still complete, or why not. */
  close(): "end" | HostError;
}

/**
 * `ping` for a sign of life without content; `stop` where the host says why the answer ended; `end` once its own end
 * mark was read.
 */
export type ReadOutcome = "more" | "ping" | "stop" | "end" | HostError;

export const isFault = (outcome: unknown): outcome is HostError =>
  typeof outcome === "object" && outcome !== null;
