import type { Quirks, SurfaceName } from "../catalog/catalog.ts";
import type { ErrorObject, Refusal } from "../errors/refusal.ts";
import type { Blame } from "./blame.ts";

/**
 * A surface is a wire language. Clients speak one to the gateway, hosts speak one to it, and a `Pairing` joins the two:
 * where both are the same, the host's bytes pass through beside a meter; where they differ, one surface's reader meets
 * the other's writer. Everything here is pure: bytes in, bytes and facts out.
 */
export interface Surface {
  readonly name: SurfaceName;
  /** Appended to a host's base address, and to `/v1` for clients: `/chat/completions`. */
  readonly path: string;
  /** Reads what routing, admission and the host need to know; refuses what the language does not allow. */
  readRequest(body: Uint8Array): GenerationRequest | Refusal;
  /** The body of an HTTP error as clients of this language expect it. */
  errorBody(error: ErrorObject, receiptId: string): Uint8Array;
  /** What a host speaking this language said in an answer that is not a 2xx. */
  readHostError(status: number, body: Uint8Array): HostError;
}

/** A client's request, understood. `body` stays as it came; changes are spliced into a copy. */
export interface GenerationRequest {
  readonly surface: SurfaceName;
  readonly body: Uint8Array;
  readonly json: Readonly<Record<string, unknown>>;
  readonly model: string;
  readonly stream: boolean;
  /** Ceiling that the client named, for one choice; null when it named none. */
  readonly maxOutputTokens: number | null;
  /** Number of answers asked for (`n`), at least 1. Each may reach the ceiling. */
  readonly choices: number;
  /** Never below the prompt's tokens for any byte-level BPE vocabulary; images at a stated bound, embedded files left out. */
  readonly promptBound: number;
  /** A fair guess of the prompt's tokens, for rate limits. */
  readonly promptEstimate: number;
  /** Of `promptBound`, what is not text and a count of the text does not find. */
  readonly mediaTokens: number;
  /** Files are embedded, of which only reading them tells how many tokens they come to. */
  readonly promptHasFiles: boolean;
  /** A fair guess of the prompt's tokens that are not sound; null where there is no sound in it. */
  readonly promptBesideAudio: number | null;
  /** Sound is asked for in the answer. */
  readonly answersInAudio: boolean;
  /** Some of it may be kept in a cache for an hour, which costs more. */
  readonly promptCachedFor1h: boolean;
  /** The host adds what nobody here knows the size of: files that it fetches, its own searches. */
  readonly promptUnseen: boolean;
  /** Routing overrides as they came, unjudged; absent members are absent. */
  readonly overrides: Readonly<{
    models?: unknown;
    provider?: unknown;
    route?: unknown;
    fallbacks?: unknown;
  }>;
}

/**
 * Tokens as the receipt shows them. `input`, `cacheRead` and `cacheWrite` are disjoint and sum to the prompt; `reasoning`
 * is a part of `output`.
 */
export interface Usage {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** The part of `input` that is sound; absent where the host does not say. */
  readonly audioInput?: number;
  /** The part of `cacheWrite` that is kept for an hour; absent where the host does not say. */
  readonly cacheWrite1h?: number;
  readonly output: number;
  /** The part of `output` that is sound; absent where the host does not say. */
  readonly audioOutput?: number;
  readonly reasoning: number;
  /** What the host says that it charged, in USD; absent where it says nothing. */
  readonly costUsd?: number;
}

/** A host's own words about a failure. */
export interface HostError {
  readonly message: string;
  /** What a receipt may keep of it: a code, or our own words. A host's sentence may repeat the prompt. */
  readonly kept: string;
  /** The host says that the prompt does not fit its context. */
  readonly contextTooLong: boolean;
  /** The request field that the host blames. */
  readonly param: string | null;
  readonly blames: Blame;
  /** For how long the host asks to be left alone; null where its words do not say. */
  readonly restMs: number | null;
}

/** One client language on one host language. */
export interface Pairing {
  /** What to send; a refusal says which field the host's language cannot express. Usage is always asked for. */
  hostBody(request: GenerationRequest, target: HostTarget): HostBody | Refusal;
  /** Reads a whole, unstreamed 2xx answer. */
  readReply(body: Uint8Array, request: GenerationRequest, asked: Asked): Reply;
  /** Judges a streamed answer as it arrives. */
  openStream(request: GenerationRequest, asked: Asked): StreamJudge;
  /** The same where the client wants it whole. */
  openWhole(request: GenerationRequest, asked: Asked): WholeJudge;
}

export interface HostBody {
  readonly bytes: Uint8Array;
  /** Fields of the client's that were left out, because the answer means the same without them. */
  readonly omitted: readonly string[];
}

/** What an answer says about itself. */
export interface Asked {
  /** The model's id in the catalog. */
  readonly publicModel: string;
  /** Unix time in seconds; the host's own goes before it. */
  readonly atS: number;
}

export interface HostTarget {
  /** Whether the host is to stream; the client may want the answer whole all the same. */
  readonly stream: boolean;
  readonly model: string;
  /** The model's id in the catalog. */
  readonly publicModel: string;
  readonly quirks: Quirks;
  /** Set to make the host stop at this many output tokens although the client named no ceiling. */
  readonly maxOutputTokens: number | null;
  /** For languages in which a ceiling must be named. */
  readonly defaultMaxOutputTokens: number;
}

export type Reply =
  | {
      readonly kind: "reply";
      /** For the client: the host's bytes with `model` put back. */
      readonly body: Uint8Array;
      readonly usage: Usage | null;
      /** Counted from the text, for when the host reports no usage. */
      readonly countedTokens: number;
    }
  | { readonly kind: "fault"; readonly error: HostError };

/**
 * Turns a host's stream into the client's, whole events only: a half-arrived event never leaves, so a stream that breaks
 * can still be ended properly in the client's language. Fed at any split of the bytes it yields the same bytes.
 */
export interface StreamJudge {
  /** Bytes for the client, possibly none. The end mark is not among them: see `terminal`. */
  push(chunk: Uint8Array): Uint8Array;
  /** The host's body ended. Sets `terminal`, or `fault` when the stream was not complete. */
  end(): Uint8Array;
  /** A token (text, reasoning, tool call, refusal) has arrived; roles, pings and comments are not tokens. */
  readonly tokenSeen: boolean;
  /** The client's end mark, once the host's was read; sent last, after settlement. */
  readonly terminal: Uint8Array | null;
  /** The host said, or showed, that it failed. Bytes already returned stay valid. */
  readonly fault: HostError | null;
  readonly usage: Usage | null;
  /** Output tokens delivered so far, counted cheaply from the text (see tokens/estimate). */
  readonly countedTokens: number;
  /** Frames that end the client's stream with an error, in its own language; no end mark follows them. */
  fail(error: ErrorObject): Uint8Array;
}

/** Puts a streamed answer together. What it returns on the way is nothing for the client. */
export interface WholeJudge extends StreamJudge {
  /** The answer, once `terminal` is set. */
  reply(): Reply;
}
