import { fault } from "../host-error.ts";
import type { HostError } from "../surface.ts";
import type { AnswerEvents } from "./answer-events.ts";

/** Reads one host's streamed answer and tells it as events. */
export interface AnswerReader {
  /**
   * An event's data, null where it has none. `end` once the host's own end mark was read; `ping` for a sign
   * of life without content.
   */
  read(data: string | null): "more" | "ping" | "end" | HostError;
  /** The host's body is over without an end mark: still complete, or why not. */
  close(): "end" | HostError;
}

/** Reads a whole answer: null when all is told. */
export type WholeReader = (
  json: Readonly<Record<string, unknown>>,
  events: AnswerEvents,
  family: string,
) => HostError | null;

export const isFault = (outcome: unknown): outcome is HostError =>
  typeof outcome === "object" && outcome !== null;

export const ENDED_EARLY = fault("the stream ended without its end mark");
