import type { Clock, Timer } from "../units/clock.ts";

/**
 * SQLite copies its write-ahead log into the database every thousand pages, inside whichever commit comes last, with two
 * syncs: some 5 ms on this loop for each, measured as the loop's p99. A thread of its own does it every second instead,
 * without holding writers up; connections that rely on it turn the automatic one off.
 */
export class Checkpointer {
  private readonly thread = new Worker(new URL("./checkpoint-thread.ts", import.meta.url), {
    ref: false,
  } as WorkerOptions);
  private timer: Timer | null = null;
  private stopped = false;
  /** Who hears of the round that is under way, and who of the next. */
  private asking: readonly Ask[] = [];
  private waiting: Ask[] = [];

  constructor(
    private readonly path: string,
    private readonly clock: Pick<Clock, "after">,
    private readonly onFault: (error: unknown) => void,
  ) {
    this.thread.onmessage = ({ data }: MessageEvent<Round>) => this.ended(data);
    this.thread.onerror = (event) => this.onFault(event.message);
    this.later();
  }

  /** True once all that was committed before this call will outlive a power cut; false when that did not come about. */
  now(): Promise<boolean> {
    if (this.stopped) return Promise.resolve(false);
    const asked = new Promise<boolean>((resolve) => this.waiting.push(resolve));
    // A round that is under way may have begun before.
    if (this.timer !== null) this.begin();
    return asked;
  }

  stop(): void {
    this.stopped = true;
    this.timer?.cancel();
    this.thread.terminate();
    for (const answer of [...this.asking, ...this.waiting]) answer(false);
  }

  private later(): void {
    this.timer = this.clock.after(EVERY_MS, () => this.begin());
  }

  private begin(): void {
    this.timer?.cancel();
    this.timer = null;
    this.asking = this.waiting;
    this.waiting = [];
    this.thread.postMessage(this.path);
  }

  private ended({ through, fault }: Round): void {
    if (this.stopped) return;
    if (fault !== undefined) this.onFault(fault);
    for (const answer of this.asking) answer(through);
    this.asking = [];
    if (this.waiting.length > 0) this.begin();
    else this.later();
  }
}

type Ask = (through: boolean) => void;

interface Round {
  readonly through: boolean;
  readonly fault?: string;
}

const EVERY_MS = 1_000;
