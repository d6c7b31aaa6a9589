import type { Clock } from "../../units/clock.ts";
import { FairQueue } from "../../units/fair-queue.ts";
import type { Work, WorkDone } from "./work.ts";

/**
 * A thread that does one piece of work after the other, and the line before it. It starts with the first. Who
 * waits is bounded in number and in time, and a thread that does not finish in time is replaced.
 */
export class CountingWorker {
  private thread: Worker | null = null;
  private busy = false;
  private stopped = false;
  /** Ends what the thread does now. */
  private finish: ((done: WorkDone | null) => void) | null = null;
  private readonly line: FairQueue<true>;

  constructor(
    private readonly clock: Clock,
    private readonly threadUrl: URL,
    /** Arguments of the thread, and how many ranks its line has. */
    private readonly options: { readonly args: readonly string[]; readonly ranks: number },
  ) {
    this.line = new FairQueue(MAX_WAITING, clock, options.ranks);
  }

  /** Work that waits, and that the thread does now. */
  get inUse(): number {
    return this.line.waiting + (this.busy ? 1 : 0);
  }

  /** Null when it cannot be done in time. What is handed over with it is no longer here, and comes back. */
  async take(work: Work, turn: WorkTurn, handedOver: ArrayBuffer[] = []): Promise<WorkDone | null> {
    const { key, rank, signal, withinMs } = turn;
    const ms = Math.min(withinMs, MAX_WORK_MS);
    const dueMs = this.clock.elapsedMs() + ms;
    const slot = this.occupy() ?? (await this.line.wait({ turn: key, size: 1, rank }, ms, signal));
    if (slot === null) return null;
    const leftMs = dueMs - this.clock.elapsedMs();
    if (!this.stopped && !signal.aborted && leftMs > 0) return this.run(work, leftMs, signal, handedOver);
    this.vacate();
    return null;
  }

  /** What waits is answered null. */
  stop(): void {
    this.stopped = true;
    this.replace();
  }

  /** Answers in time whatever happens; the thread is free only when it has finished, or was replaced. */
  private run(
    work: Work,
    leftMs: number,
    signal: AbortSignal,
    handedOver: ArrayBuffer[],
  ): Promise<WorkDone | null> {
    const { clock } = this;
    const { promise, resolve } = Promise.withResolvers<WorkDone | null>();
    const leave = () => resolve(null);
    const timers = [clock.after(leftMs, leave), clock.after(MAX_WORK_MS, () => this.replace())];
    signal.addEventListener("abort", leave);
    this.finish = (done) => {
      this.finish = null;
      for (const timer of timers) timer.cancel();
      signal.removeEventListener("abort", leave);
      resolve(done);
      this.vacate();
    };
    try {
      (this.thread ??= this.open()).postMessage(work, handedOver);
    } catch {
      // A bill waits for this: what cannot be handed over is not counted.
      this.replace();
    }
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
    const thread = new Worker(this.threadUrl, { ref: false, argv: [...this.options.args] } as WorkerOptions);
    thread.onmessage = ({ data }: MessageEvent<WorkDone>) => {
      if (thread === this.thread) this.finish?.(data);
    };
    thread.onerror = () => {
      if (thread === this.thread) this.replace();
    };
    return thread;
  }

  /** The next piece of work opens a new thread. */
  private replace(): void {
    this.thread?.terminate();
    this.thread = null;
    this.finish?.(null);
  }
}

/** Where a piece of work stands in line. */
export interface WorkTurn {
  /** Work of one key takes turns with the others' work. */
  readonly key: string;
  /** A lower one goes first. */
  readonly rank: number;
  readonly signal: AbortSignal;
  readonly withinMs: number;
}

/** Twice what the largest body takes, the loading of the vocabulary included. */
export const MAX_WORK_MS = 10_000;
/** A host that fails may end many hundred streams at once, and each of them is counted. */
const MAX_WAITING = 2_000;
