import type { HostError } from "../surface.ts";

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
