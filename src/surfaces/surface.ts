import type { SurfaceName } from "../catalog/catalog.ts";
import type { ByRetention, Price } from "../catalog/price.ts";
import type { Quirks } from "../catalog/quirks.ts";
import type { Tokens } from "../catalog/tokens.ts";
import type { AnswerText, TextMoment } from "../tokens/answer-text.ts";
import type { ErrorObject, Refusal } from "../units/errors/refusal.ts";
import type { Blame } from "./blame.ts";

/**
 * A surface is a wire language. Clients speak one to the gateway, hosts speak one to it, and a `Pairing`
 * joins the two: where both are the same, the host's bytes pass through next to a meter; where they differ,
 * one surface's reader meets the other's writer. Everything here is pure: bytes in, bytes and facts out.
 */
export interface Surface {
  readonly name: SurfaceName;
  /** Appended to a host's base address, and to `/v1` for clients: `/chat/completions`. */
  readonly path: string;
  /** An event without content, for a stream in which nothing else is said. */
  readonly keepalive: Uint8Array;
  /**
   * Reads what routing, admission and the host need to know; refuses what the language does not allow. Bodies from so
   * many bytes on are outlined (surfaces/request); the gateway leaves that number to it.
   */
  readRequest(body: Uint8Array, outlinedFrom?: number): GenerationRequest | Refusal;
  /** The body of an HTTP error as clients of this language expect it. */
  errorBody(error: ErrorObject, receiptId: string): Uint8Array;
  /** The end of a stream of which no more is known than its language. */
  brokenOff(error: ErrorObject): Uint8Array;
  /** A whole 2xx answer of a host as the stream that the host would have sent, or what is wrong with it. */
  synthesizeStream(body: Uint8Array): Uint8Array | HostError;
}

/** How large a prompt is, before any token is counted. */
export interface PromptSize {
  /**
   * An upper bound on the prompt's tokens in any byte-level BPE vocabulary. Images count at a fixed bound;
   * embedded files are left out.
   */
  readonly promptBound: number;
  /** An estimate of the prompt's tokens, for rate limits. */
  readonly promptEstimate: number;
  /** The part of `promptEstimate` that is text. */
  readonly promptTextEstimate: number;
  /** The part of `promptBound` that is not text, and so not covered by a count of the text. */
  readonly mediaTokens: number;
  /** There are embedded files; only reading them tells how many tokens they have. */
  readonly promptHasFiles: boolean;
  /** An estimate of the prompt's tokens that are not audio; null when it contains no audio. */
  readonly promptWithoutAudio: number | null;
  /** The host adds content of unknown size: files that it fetches, its own searches. */
  readonly promptUnseen: boolean;
}

/** What decides what a request may cost, besides its output ceiling. */
export interface RequestSize extends PromptSize {
  /** The client asks for audio in the answer. */
  readonly answersInAudio: boolean;
  /** For how long parts of the prompt are to be cached, each with the field that names it first. */
  readonly promptRetentions: ByRetention<string>;
}

/** A client's request, parsed. `body` stays as it came; changes are spliced into a copy. */
export interface GenerationRequest extends RequestSize {
  readonly surface: SurfaceName;
  readonly body: Uint8Array;
  readonly json: Readonly<Record<string, unknown>>;
  /**
   * The same for decisions about members and their values, in which long texts of the conversation may be cut: a part of
   * it that such a decision needs is never longer than what is left (surfaces/json/outline).
   */
  readonly outline: Readonly<Record<string, unknown>>;
  /** The conversation in `body`, where it is cut in `outline` and parsed only once `json` is read for it; else null. */
  readonly list: ListSpan | null;
  /** The id that is meant; as the client wrote it until the catalog was read. */
  readonly model: string;
  /** The model as the client wrote it. */
  readonly requestedModel: string;
  readonly stream: boolean;
  /** The output ceiling that the client named, per choice; null when it named none. */
  readonly maxOutputTokens: number | null;
  /** Number of answers requested (`n`), at least 1. Each may reach the ceiling. */
  readonly choices: number;
  /** Routing overrides as they came, not yet checked. */
  readonly overrides: Readonly<{
    models?: unknown;
    provider?: unknown;
    route?: unknown;
    fallbacks?: unknown;
  }>;
}

interface ListSpan {
  readonly from: number;
  readonly to: number;
  /** Where its first values start and end, in pairs. */
  readonly turns: readonly number[];
}

/** What a host says that an answer used. */
export interface Usage extends Tokens {
  /** What the host says it charged, in USD; absent when it does not say. */
  readonly costUsd?: number;
  /** What each model used of it, in order, where the host says so (`usage.iterations`); absent: it does not. */
  readonly parts?: readonly UsagePart[];
}

/** What one model used of an answer that a host may have had several models write. */
export interface UsagePart {
  /** Its name at the host; null: the model requested. */
  readonly model: string | null;
  /** It ended the answer instead of the model requested. */
  readonly isFallback: boolean;
  readonly usage: Usage;
}

/** Who wrote an answer, where the host may go on with another of its models by itself: all by their names there. */
export interface Writers {
  /** The model that the answer names; null: none. */
  readonly first: string | null;
  /** Where a model gave way to another, in order. */
  readonly hops: readonly Hop[];
}

export interface Hop {
  readonly from: string;
  readonly to: string;
  /** How much was written by then. */
  readonly at: TextMoment;
}

/** What an answer cost, with its tokens, as the receipt has both: the client gets both in its last usage. */
export interface Billed {
  readonly tokens: Usage;
  readonly costUsd: number;
  /** Further members of the usage, in the client's language; absent: none. */
  readonly more?: object;
}

/** A host's own words about a failure. */
export interface HostError {
  readonly message: string;
  /** What a receipt may keep of it: a code, or our own words. A host's sentence may quote the prompt. */
  readonly kept: string;
  /** The host says that the prompt does not fit its context. */
  readonly contextTooLong: boolean;
  /** The request field that the host blames. */
  readonly param: string | null;
  readonly blames: Blame;
  /** It is clear without a status that the host finds the request wrong. */
  readonly isVerdict: boolean;
  /** The host will not answer for policy reasons. */
  readonly isPolicy: boolean;
  /** For how long the host asks to be left alone; null where its words do not say. */
  readonly restMs: number | null;
}

/** A client of one language on a host of another, or of the same. */
export interface Pairing {
  /**
   * What to send; a refusal says which field the host's language cannot express. Usage is always requested.
   */
  hostBody(request: GenerationRequest, target: HostTarget): HostBody | Refusal;
  readReply(body: Uint8Array, request: GenerationRequest, metadata: AnswerMetadata): ReadReply;
  openStream(request: GenerationRequest, metadata: AnswerMetadata): StreamJudge;
  /** The same where the client wants it whole. */
  openWhole(request: GenerationRequest, metadata: AnswerMetadata): WholeJudge;
}

export interface HostBody {
  /** What is sent, in order. What stays as it is of a large body are the client's own bytes, which must not change. */
  readonly parts: readonly Uint8Array[];
  /** The client's fields that were left out because the answer means the same without them. */
  readonly omitted: readonly string[];
  /** The version of the host's language that it is written in, where the newest one would refuse it. */
  readonly version?: string;
  /** The beta of the host's language that it needs. */
  readonly beta?: string;
  /** What the host reads of the client's body, and its size; null where that is all of it. */
  readonly content: (() => HostContent) | null;
}

export interface HostContent {
  readonly bytes: Uint8Array;
  readonly size: RequestSize;
}

/** What an answer says about itself. */
export interface AnswerMetadata {
  /** The model's id in the catalog. */
  readonly publicModel: string;
  /** The id of the last writer, where the host falls back by itself; absent: all are `publicModel`'s words. */
  readonly idOf?: (writers: Writers) => string;
  /** Unix time in seconds, for when the host states none. */
  readonly atS: number;
  /** The same when the answer has ended; absent: `atS`. */
  readonly endS?: () => number;
}

export interface HostTarget {
  /** Whether the host should stream; the client may still want the answer whole. */
  readonly stream: boolean;
  readonly model: string;
  /** The model's id in the catalog. */
  readonly publicModel: string;
  readonly quirks: Quirks;
  /** What the route costs: marks are kept for as long as has a price there. Absent: as long as the host keeps them by default. */
  readonly price?: Price;
  /** On Messages: marks what the next turn repeats, for the host's cache, unless the client has. */
  readonly marksCache?: boolean;
  /**
   * If set, the host must stop at this many output tokens although the client named no ceiling, or a higher
   * one.
   */
  readonly maxOutputTokens: number | null;
  /** For languages in which a ceiling must be named. */
  readonly defaultMaxOutputTokens: number;
  /** What the host may go on with by itself, in Anthropic's form; absent: nothing. */
  readonly fallbacks?: readonly object[];
}

export type ReadReply =
  | {
      readonly kind: "reply";
      /** For the client: the host's bytes with `model` put back and the bill in its usage. */
      body(bill: Billed): Uint8Array;
      readonly usage: Usage | null;
      /** The host declined: see `isDeclined`. */
      readonly isDeclined: boolean;
      /** Output tokens counted cheaply from the text. */
      readonly countedTokens: number;
      /** The texts that they were counted from. */
      texts(): readonly string[];
      /** Absent: one model. */
      readonly writers?: Writers;
    }
  | { readonly kind: "fault"; readonly error: HostError };

/**
 * Turns a host's stream into the client's, whole events only: a half-arrived event never leaves, so a stream
 * that breaks can still be ended properly in the client's language. Fed at any split of the bytes it yields
 * the same bytes.
 */
export interface StreamJudge {
  /** Bytes for the client, possibly none. Its last frames are not among them: see `last`. */
  push(chunk: Uint8Array): Uint8Array;
  /** The host fails once it has sent more than so many bytes. */
  limitTo(bytes: number): void;
  /** The host's body ended. Sets `isComplete`, or `fault` when the stream was not complete. */
  end(): Uint8Array;
  /** A token (text, reasoning, tool call, refusal) has arrived; roles, pings and comments are not tokens. */
  readonly tokenSeen: boolean;
  /** The host's end mark was read. */
  readonly isComplete: boolean;
  /** Set when the host said, or showed, that it failed. Bytes already returned stay valid. */
  readonly fault: HostError | null;
  readonly usage: Usage | null;
  /**
   * The host ended the answer at a ceiling or a filter. That is an answer, also where nothing was written by
   * then.
   */
  readonly stoppedShort: boolean;
  /** The host has declined by now: see `isDeclined`. */
  readonly isDeclined: boolean;
  /** The host has said why the answer ended, and no text since: only its usage and its end mark may follow. */
  readonly hasStopped: boolean;
  /** Output tokens delivered so far, counted cheaply from the text (see tokens/estimate). */
  readonly countedTokens: number;
  /** The text that they were counted from. */
  readonly text: AnswerText;
  /** Absent: one model. */
  readonly writers?: Writers | undefined;
  /**
   * The client's frames from its last usage to the end mark, once the stream is complete; sent after
   * settlement.
   */
  last(bill: Billed): Uint8Array;
  /**
   * Frames that end the client's stream with an error, in its own language; no end mark follows them. The
   * bill is null where nothing is charged.
   */
  fail(error: ErrorObject, bill: Billed | null): Uint8Array;
}

/** Assembles a streamed answer. What `push` returns on the way is not for the client. */
export interface WholeJudge extends StreamJudge {
  /** The answer, once it is complete. */
  reply(): ReadReply;
}
