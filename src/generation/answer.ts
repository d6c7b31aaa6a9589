/**
 * What a generation request is answered with. The HTTP floor turns it into a response and adds nothing to it:
 * every header, the receipt's among them, is here.
 */
export type GenerationAnswer = WholeAnswer | StreamedAnswer;

export interface WholeAnswer {
  readonly kind: "whole";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export interface StreamedAnswer {
  readonly kind: "stream";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Runs once, to the stream's end; never rejects. */
  run(sink: Sink): Promise<void>;
  /** Known at its end: it broke off, and nothing was charged. */
  readonly cameToNothing?: boolean;
}

/** The client's end of a stream. */
export interface Sink {
  /**
   * Resolves when the client has taken the bytes, or at once while its buffer has room; false when it is
   * gone.
   */
  write(bytes: Uint8Array): boolean | Promise<boolean>;
  close(): void;
}

/** A generation request as the HTTP floor hands it on: nothing of it is parsed yet. */
export interface GenerationCall {
  /** The plaintext of the bearer token. */
  readonly secret: string;
  /** Headers of the client's request, lower-case names. */
  readonly headers: Headers;
  readonly body: Uint8Array;
  /** The network blocks that the client is in, the narrowest first. */
  blocks(): readonly string[];
  /** The body is large, and its sender could not pay for so much. */
  readonly isUnpaid: boolean;
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
}
