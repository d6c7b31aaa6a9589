import { FairLine } from "../limits/fair-line.ts";
import type { Family } from "../tokens/families.ts";
import type { Clock, Timer } from "../units/clock.ts";

/**
 * Exact counts, in a thread of its own: tokenizing a long text takes longer than any stream should wait. The
 * thread starts with the first count and does one after the other. Who waits is bounded in number and in time,
 * and a thread that does not finish in time is replaced.
 */
export class Counting {
  private thread: Worker | null = null;
  private busy = false;
  private stopped = false;
  private loading: Timer | null = null;
  /** Ends what the thread does now. */
  private finish: ((count: Count | null) => void) | null = null;
  private readonly line: FairLine<true>;

  constructor(
    private readonly clock: Clock,
    private readonly threadUrl = new URL("./counting-thread.ts", import.meta.url),
  ) {
    this.line = new FairLine(MAX_WAITING, clock, Object.keys(RANKS).length);
  }

  /**
   * Tokens of an answer's texts, all together, in a family's vocabulary, special tokens being text; null when
   * they cannot be counted in time. Goes before all prompts, because a bill waits for it.
   */
  async count(texts: readonly string[], family: Family): Promise<number | null> {
    return (await this.take({ what: "answer", texts, family }, BILLED))?.tokens ?? null;
  }

  /**
   * The same of the text in a request body, of which no host has told the tokens. It may be megabytes, so answers
   * go before it.
   */
  async billedPrompt(body: Uint8Array, family: Family): Promise<number | null> {
    const turn: CountTurn = { ...BILLED, rank: "paid" };
    return (await this.take({ what: "text", body, family }, turn))?.tokens ?? null;
  }

  /**
   * Of a request body, the tokens of its text in a common vocabulary, or the most that its embedded files come
   * to (null when they can be of any size). Null when it cannot be counted in time.
   */
  prompt(what: "text" | "files", body: Uint8Array, turn: CountTurn): Promise<Count | null> {
    return this.take({ what, body, family: "o200k" }, turn);
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
    this.stopped = true;
    this.loading?.cancel();
    this.replace();
  }

  private async take(work: CountWork, { key, rank, signal, withinMs }: CountTurn): Promise<Count | null> {
    const ms = Math.min(withinMs, MAX_COUNT_MS);
    const dueMs = this.clock.elapsedMs() + ms;
    const place = this.occupy() ?? (await this.line.wait(key, 1, ms, signal, RANKS[rank]));
    if (place === null) return null;
    const leftMs = dueMs - this.clock.elapsedMs();
    if (!this.stopped && !signal.aborted && leftMs > 0) return this.run(work, leftMs, signal);
    this.vacate();
    return null;
  }

  /** Answers in time whatever happens; the thread is free only when it has finished, or was replaced. */
  private run(work: CountWork, leftMs: number, signal: AbortSignal): Promise<Count | null> {
    const { clock } = this;
    const { promise, resolve } = Promise.withResolvers<Count | null>();
    const leave = () => resolve(null);
    const timers = [clock.after(leftMs, leave), clock.after(MAX_COUNT_MS, () => this.replace())];
    signal.addEventListener("abort", leave);
    this.finish = (count) => {
      this.finish = null;
      for (const timer of timers) timer.cancel();
      signal.removeEventListener("abort", leave);
      resolve(count);
      this.vacate();
    };
    (this.thread ??= this.open()).postMessage(work);
    return promise;
  }

  private occupy(): true | null {
    if (this.busy) return null;
    this.busy = true;
    return true;
  }

  private vacate(): void {
    this.busy = false;
    this.line.invite(() => this.occupy());
  }

  private open(): Worker {
    const thread = new Worker(this.threadUrl, { ref: false } as WorkerOptions);
    thread.onmessage = ({ data }: MessageEvent<Count>) => {
      if (thread === this.thread) this.finish?.(data);
    };
    thread.onerror = () => {
      if (thread === this.thread) this.replace();
    };
    return thread;
  }

  /** The next count opens a new thread. */
  private replace(): void {
    this.thread?.terminate();
    this.thread = null;
    this.finish?.(null);
  }
}

/** Where a count stands in line. */
export interface CountTurn {
  /** Whoever shares it takes turns with the others. */
  readonly key: string;
  readonly rank: keyof typeof RANKS;
  readonly signal: AbortSignal;
  readonly withinMs: number;
}

/** Who goes first. */
const RANKS = { answer: 0, paid: 1, unpaid: 2 };

export interface Count {
  readonly tokens: number | null;
  /** Processor time that it took. */
  readonly ms: number;
}

/** What the thread is told to count. */
export type CountWork =
  | { readonly what: "answer"; readonly texts: readonly string[]; readonly family: Family }
  | { readonly what: "text" | "files"; readonly body: Uint8Array; readonly family: Family };

const LOAD_AFTER_MS = 5_000;
/** Twice what the largest body takes, the loading of the vocabulary included. */
export const MAX_COUNT_MS = 10_000;
/** A host that fails may end many hundred streams at once, and each of them is counted. */
const MAX_WAITING = 2_000;
const STAYS = new AbortController().signal;
const BILLED: CountTurn = { key: "", rank: "answer", signal: STAYS, withinMs: MAX_COUNT_MS };
