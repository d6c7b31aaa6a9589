import type { SimulatedAnswer, SimulatedRequest } from "./answer.ts";

/**
 * A wire language as a host speaks it. The three of them are written from their providers' reference pages.
 */
export interface SimulatedLanguage {
  readonly path: string;
  /** A text says what is wrong with the request. */
  read(json: Readonly<Record<string, unknown>>): SimulatedRequest | string;
  whole(answer: SimulatedAnswer): object;
  events(answer: SimulatedAnswer, json: Readonly<Record<string, unknown>>): Generator<SimulatedEvent>;
  error(status: number, message: string): object;
}

export interface SimulatedEvent {
  /** The SSE event's name; null where the language has none. */
  readonly event: string | null;
  readonly data: object | "[DONE]";
  /** Carries a word: the next one comes a moment later. */
  readonly paced: boolean;
}

/** The same on both of OpenAI's surfaces. */
export const openAiError: SimulatedLanguage["error"] = (status, message) => ({
  error: {
    message,
    type: status >= 500 ? "server_error" : "invalid_request_error",
    param: null,
    code: status === 404 ? "model_not_found" : null,
  },
});
