import type { Model } from "../catalog/catalog.ts";
import type { HostFaultKind, LOST_HEDGE } from "../ledger/receipt.ts";
import type { Candidate } from "../routing/candidate.ts";
import { NO_BYTES } from "../surfaces/json/bytes.ts";
import type { HostError, ReadReply, StreamJudge, Usage } from "../surfaces/surface.ts";
import { type NativeFallbackAnswer, ranIn } from "./native-fallback-answer.ts";
import type { Slot } from "./slots/host-slots.ts";
import type { HostBytes, HostExchange } from "./transport.ts";

/** How a request at one host ended: with the commit point (`Opened`), a whole answer, or without either. */
export type HostAttemptOutcome =
  | Opened
  | AnsweredWhole
  | Declined
  | Rejected
  | HostFailure
  | { readonly kind: "abandoned" | typeof LOST_HEDGE; readonly message: string };

export interface HostFailure {
  readonly kind: "refused" | "unreachable" | "silent";
  readonly message: string;
  /** The error status that the host answered with. */
  readonly status?: number;
  /** What broke below HTTP. */
  readonly fault?: HostFaultKind;
  /** It concerns the whole host, not only this model. */
  readonly wholeHost?: boolean;
  /** It concerns the gateway's account or key there. */
  readonly ofAccount?: boolean;
  /** Only the key of this attempt failed, and the host has others for the request. */
  readonly hasOtherKey?: boolean;
  /** It is the host's own doing: no request could have caused it. */
  readonly certain?: boolean;
  /** The host has too much to do. */
  readonly overloaded?: boolean;
  /** The host asks to be left alone for this long. */
  readonly restMs?: number | null;
  /** It was given up before its share of the time was over, because another host was ready. */
  readonly early?: boolean;
  /** It failed this long after its first token, while its answer was collected. */
  readonly lateMs?: number;
}

/**
 * A stream whose first token is here. It may last for minutes, so it keeps nothing of what it was opened
 * with.
 */
export class Opened {
  readonly kind = "opened";
  private slot: Slot | null = null;

  constructor(
    readonly candidate: Candidate,
    /** Fields of the request that were not sent to the host: see `Pairing`. */
    readonly omitted: readonly string[],
    readonly source: HostBytes,
    readonly judge: StreamJudge,
    private first: Uint8Array,
    private readonly exchange: HostExchange,
    /** The host gave its answer in one piece, and has nothing to do for it any more. */
    readonly isWhole = false,
    /** The models of its host that may have a part in it, the one requested first; null: only one may. */
    readonly chain: readonly Candidate[] | null = null,
  ) {}

  /** The place at the host, given back when the stream is over. */
  occupy(slot: Slot): void {
    this.slot = slot;
  }

  /** What has come so far, for the client. */
  takeFirst(): Uint8Array {
    const { first } = this;
    this.first = NO_BYTES;
    return first;
  }

  /** Stops the host, however far it is; one that has said its last word only has to end its body. */
  cancel(): void {
    if (this.judge.isComplete) this.exchange.done();
    else this.exchange.cancel();
    const { usage } = this.judge;
    if (usage !== null) this.slot?.used(tokensIn(usage));
    this.slot?.release();
  }
}

export interface AnsweredWhole {
  readonly kind: "answered";
  readonly candidate: Candidate;
  readonly omitted: readonly string[];
  readonly reply: Extract<ReadReply, { kind: "reply" }>;
  /** As of `Opened`. */
  readonly chain: readonly Candidate[] | null;
}

/** The host declined, which another model may not: see `isDeclined` in surfaces. */
export interface Declined {
  readonly kind: "declined";
  /** What it said: a refusal without content. */
  readonly answer: GivenAnswer;
}

export interface Rejected {
  readonly kind: "rejected";
  readonly candidate: Candidate;
  readonly status: number;
  readonly error: HostError;
}

export type GivenAnswer = Opened | AnsweredWhole;

/** Null where the host gave none. */
export function answerOf(outcome: HostAttemptOutcome): GivenAnswer | null {
  if (outcome.kind === "declined") return outcome.answer;
  return outcome.kind === "opened" || outcome.kind === "answered" ? outcome : null;
}

export const readOf = (answer: GivenAnswer): NativeFallbackAnswer =>
  answer.kind === "opened" ? answer.judge : answer.reply;

/** The models that declined: all that the host ran. */
export const decliningIn = (answer: GivenAnswer): readonly Model[] =>
  answer.chain === null
    ? [answer.candidate.model]
    : ranIn(answer.chain, readOf(answer)).map((position) => answer.chain![position]!.model);

export const tokensIn = ({ input, cacheRead, cacheWrite, output }: Usage): number =>
  input + cacheRead + cacheWrite + output;
