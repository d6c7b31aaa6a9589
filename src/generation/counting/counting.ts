import type { Opening } from "../../routing/conversation.ts";
import type { Subject } from "../../surfaces/request/refused-request.ts";
import type { GenerationRequest } from "../../surfaces/surface.ts";
import type { TokenizerFamily } from "../../tokens/families.ts";
import type { Clock, Timer } from "../../units/clock.ts";
import { type Refusal, refuse } from "../../units/errors/refusal.ts";
import { CountingWorker, MAX_WORK_MS } from "./counting-worker.ts";
import {
  type AnswerCounts,
  type AnswerTexts,
  type Compacted,
  type Count,
  GIVES_WAY,
  type ReadWork,
  type RequestSeen,
  type Work,
} from "./work.ts";

/**
 * Exact counts, in a thread: tokenizing a long text takes longer than any stream should wait. What nobody pays
 * for has a thread of its own, of the lowest priority, so that who pays never waits for more of it than the
 * kernel gives it. Large requests of senders without credit are read there as well.
 */
export class Counting {
  private loading: Timer | null = null;
  private readonly paid: CountingWorker;
  private readonly unpaid: CountingWorker;

  constructor(
    private readonly clock: Clock,
    threadUrl = new URL("./counting-thread.ts", import.meta.url),
  ) {
    this.paid = new CountingWorker(clock, threadUrl, { args: [], ranks: 2 });
    this.unpaid = new CountingWorker(clock, threadUrl, { args: [GIVES_WAY], ranks: 1 });
  }

  /** Work that waits for a thread, or is done by one. */
  get inUse(): number {
    return this.paid.inUse + this.unpaid.inUse;
  }

  /**
   * Tokens of an answer's texts, all together, in a family's vocabulary, special tokens being text; null when
   * they cannot be counted in time. Goes before all prompts, because a bill waits for it.
   */
  async count(texts: readonly string[], family: TokenizerFamily): Promise<number | null> {
    return (await this.countEach([{ texts, family }]))?.[0] ?? null;
  }

  /** The same of each of several answers. */
  async countEach(answers: readonly AnswerTexts[]): Promise<readonly number[] | null> {
    const work: Work = { what: "answers", answers };
    return (
      ((await this.paid.take(work, { ...BILLED, rank: RANKS.answer })) as AnswerCounts | null)?.tokens ?? null
    );
  }

  /**
   * The same of the text in a request body, of which no host has reported the tokens. It may be megabytes, so answers
   * go before it.
   */
  async billedPrompt(body: Uint8Array, family: TokenizerFamily): Promise<number | null> {
    const turn: CountTurn = { ...BILLED, rank: "paid" };
    return (await this.counted({ what: "text", body, family }, turn))?.tokens ?? null;
  }

  /**
   * The tokens of a request body's text in a common vocabulary, or the most that its embedded files come
   * to (null when they can be of any size). Null when it cannot be counted in time.
   */
  prompt(what: "text" | "files", body: Uint8Array, turn: CountTurn): Promise<Count | null> {
    return this.counted({ what, body, family: "o200k" }, turn);
  }

  /**
   * Reads the request of somebody without credit, whose body is handed over and comes back; null when there is
   * too much to do. Only its short members come back.
   */
  async request(parts: Omit<ReadWork, "what">, turn: Omit<CountTurn, "rank">): Promise<ReadRequest | null> {
    const work: ReadWork = { what: "request", ...parts };
    const handedOver = [work.body.buffer as ArrayBuffer];
    const seen = (await this.unpaid.take(work, { ...turn, rank: 0 }, handedOver)) as RequestSeen | null;
    if (seen === null) return null;
    const { read, subject, body } = seen;
    return "request" in read
      ? { read: { ...read.request, body }, opening: read.opening, subject }
      : { read: refuse(read.code, read.message, read.details), subject };
  }

  /** A body of `/v1/responses/compact` of such a sender as an ordinary request (surfaces/responses/compaction). */
  async compaction(body: Uint8Array, turn: Omit<CountTurn, "rank">): Promise<Uint8Array | null> {
    const work: Work = { what: "compaction", body };
    const handedOver = [body.buffer as ArrayBuffer];
    return (
      ((await this.unpaid.take(work, { ...turn, rank: 0 }, handedOver)) as Compacted | null)?.body ?? null
    );
  }

  /**
   * Loads what prompts are counted with, once the start is over: it takes a third of a second, for which the first
   * who is refused would wait.
   */
  loadAhead(): void {
    this.loading = this.clock.after(LOAD_AFTER_MS, () => void this.count([""], "o200k"));
  }

  /** What waits is answered null. */
  stop(): void {
    this.loading?.cancel();
    this.paid.stop();
    this.unpaid.stop();
  }

  private counted(work: Work, { rank, ...turn }: CountTurn): Promise<Count | null> {
    const done =
      rank === "unpaid"
        ? this.unpaid.take(work, { ...turn, rank: 0 })
        : this.paid.take(work, { ...turn, rank: RANKS[rank] });
    return done as Promise<Count | null>;
  }
}

/** Where a count stands in line. */
export interface CountTurn {
  /** Work of one key takes turns with the others' work. */
  readonly key: string;
  readonly rank: keyof typeof RANKS | "unpaid";
  readonly signal: AbortSignal;
  readonly withinMs: number;
}

/** A request without the long members of its prompt, or why it is refused. */
export interface ReadRequest {
  readonly read: GenerationRequest | Refusal;
  /** Absent where it is refused. */
  readonly opening?: Opening;
  readonly subject: Subject;
}

/** Who goes first. */
const RANKS = { answer: 0, paid: 1 };
const LOAD_AFTER_MS = 5_000;
export const MAX_COUNT_MS = MAX_WORK_MS;
const STAYS = new AbortController().signal;
const BILLED: CountTurn = { key: "", rank: "answer", signal: STAYS, withinMs: MAX_COUNT_MS };
