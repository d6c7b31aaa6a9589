import type { TSchema } from "@sinclair/typebox";

/**
 * What the API's document says of an endpoint (http/openapi). It is declared beside the handler and made of the schemas
 * that the handler reads its body with, and the tests hold every answer of the running server against it.
 */
export interface About {
  /** One line that begins with a verb: "Creates a key". */
  readonly summary: string;
  /** What a caller should know besides, in whole sentences. */
  readonly details?: string;
  /** Whose credential opens it; empty: no header is needed. */
  readonly who: readonly Credential[];
  /** Parameters of the query; all of them may be left out. */
  readonly query?: Readonly<Record<string, TSchema>>;
  /** Of the JSON that it reads. */
  readonly body?: TSchema;
  /** By status, what it answers with when it does not refuse: JSON, or other media types. */
  readonly answers: Readonly<Record<number, Content>>;
}

/** A schema means JSON of that form; null, no body; names are media types. */
export type Content = TSchema | null | readonly MediaType[];

export type MediaType =
  | "application/json"
  | "image/svg+xml"
  | "text/css"
  | "text/event-stream"
  | "text/html"
  | "text/javascript"
  | "text/plain";

/** `none`: no header is needed, though one may do more. `key`: an API key. `owner`: the recovery secret, or a session. `admin`: the operator's token. */
export type Credential = "none" | "key" | "owner" | "session" | "admin";
