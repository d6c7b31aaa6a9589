import type { Clock, Timer } from "../units/clock.ts";

/** Items that leave in batches, off the requests' path: one batch at a time. A slow or missing reader costs items, never a request. */
export abstract class Batches<Item> {
  /** Items that were too many for the reader, or did not reach it. */
  dropped = 0;
  private readonly queue: Item[] = [];
  private timer: Timer | null = null;
  private leaving: Promise<void> | null = null;

  constructor(
    private readonly timers: Pick<Clock, "after">,
    private readonly bounds: BatchBounds,
  ) {}

  /** Resolves once the reader has the items; false, or a rejection, where it has not. */
  protected abstract leave(batch: readonly Item[]): Promise<boolean>;

  protected push(item: Item): void {
    const { maxQueued, maxBatch, delayMs } = this.bounds;
    if (this.queue.length >= maxQueued) {
      this.dropped += 1;
      return;
    }
    this.queue.push(item);
    if (this.queue.length >= maxBatch) void this.flush();
    else this.timer ??= this.timers.after(delayMs, () => void this.flush());
  }

  /** Resolves once everything that was added before has left, or is given up. */
  flush(): Promise<void> {
    this.timer?.cancel();
    this.timer = null;
    this.leaving ??= this.leaveAll().finally(() => {
      this.leaving = null;
    });
    return this.leaving;
  }

  private async leaveAll(): Promise<void> {
    while (this.queue.length > 0) {
      const batch = this.queue.splice(0, this.bounds.maxBatch);
      if (!(await this.leave(batch).catch(() => false))) this.dropped += batch.length;
    }
  }
}

interface BatchBounds {
  readonly maxQueued: number;
  readonly maxBatch: number;
  /** From the first item of a batch until it leaves. */
  readonly delayMs: number;
}
