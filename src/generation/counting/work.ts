import type { SurfaceName } from "../../catalog/catalog.ts";
import type { Opening } from "../../routing/conversation.ts";
import type { Subject } from "../../surfaces/request/refused-request.ts";
import type { GenerationRequest } from "../../surfaces/surface.ts";
import type { TokenizerFamily } from "../../tokens/families.ts";
import type { ErrorCode } from "../../units/errors/codes.ts";
import type { RefusalDetails } from "../../units/errors/refusal.ts";

/** What the thread does. */
export type Work =
  | { readonly what: "answers"; readonly answers: readonly AnswerTexts[] }
  | { readonly what: "text" | "files"; readonly body: Uint8Array; readonly family: TokenizerFamily }
  | { readonly what: "compaction"; readonly body: Uint8Array }
  | ReadWork;

/** `counting` asks as `count_tokens` does, where a request needs no ceiling. */
export interface ReadWork {
  readonly what: "request";
  readonly body: Uint8Array;
  readonly surface: SurfaceName;
  readonly counting: boolean;
}

export type WorkDone = Count | AnswerCounts | RequestSeen | Compacted;

export interface AnswerTexts {
  readonly texts: readonly string[];
  readonly family: TokenizerFamily;
}

export interface AnswerCounts {
  readonly tokens: readonly number[];
}

export interface Compacted {
  readonly body: Uint8Array;
}

export interface Count {
  readonly tokens: number | null;
  /** Processor time that it took. */
  readonly ms: number;
}

/** A request as the thread found it; the body is handed back. */
export interface RequestSeen {
  readonly body: Uint8Array;
  readonly read:
    | { readonly request: Omit<GenerationRequest, "body">; readonly opening: Opening }
    | { readonly code: ErrorCode; readonly message: string; readonly details: RefusalDetails };
  readonly subject: Subject;
}

/** Argument of the thread that does what nobody pays for. */
export const GIVES_WAY = "--gives-way";
