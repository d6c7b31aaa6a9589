import { type Clock, MINUTE_MS, secondsUntil } from "../../units/clock.ts";

/**
 * Counts what was taken in the last minute, in slots of a second, so that a limit holds in *every* span of 60
 * seconds. A token bucket costs less memory but lets twice the limit pass within a minute (a full bucket,
 * then its refill), and a fixed window lets it pass around the turn of the minute.
 *
 * Times are monotonic milliseconds: a wall clock that jumps must not lift a limit.
 */
const SLOT_MS = 1_000;
/** A minute's slots, and one that is only partly past. */
const SLOTS = 61;

export class RateWindow {
  private readonly slots = new Float64Array(SLOTS);
  /**
   * When each slot was last taken from. A minute after that, the whole slot expires, so that nobody has to
   * wait longer.
   */
  private readonly lastMs = new Float64Array(SLOTS);
  private oldest = Number.POSITIVE_INFINITY;
  private newest = Number.NEGATIVE_INFINITY;
  private sum = 0;

  /** Amount taken within the last minute. */
  taken(atMs: number): number {
    this.leave(atMs);
    return this.sum;
  }

  /** Takes the amount at this moment; returns the slot, for `adjust`. */
  take(amount: number, atMs: number): number {
    this.leave(atMs);
    const slot = Math.max(Math.floor(atMs / SLOT_MS), this.newest);
    this.oldest = Math.min(this.oldest, slot);
    this.newest = slot;
    this.slots[mod(slot)]! += amount;
    this.lastMs[mod(slot)] = Math.max(atMs, this.lastMs[mod(slot)]!);
    this.sum += amount;
    return slot;
  }

  /**
   * Corrects an amount taken earlier, once its true size is known; without effect when its slot has left the
   * minute.
   */
  adjust(slot: number, by: number, atMs: number): void {
    this.leave(atMs);
    if (slot < this.oldest) return;
    this.slots[mod(slot)]! += by;
    this.sum += by;
  }

  /** Whole seconds until `amount` fits under `limit`, at least 1 and at most 60; null when it never will. */
  secondsUntilFits(amount: number, limit: number, atMs: number): number | null {
    if (amount > limit) return null;
    this.leave(atMs);
    let excess = this.sum + amount - limit;
    let freeMs = atMs;
    for (let slot = this.oldest; slot <= this.newest && excess > 0; slot++) {
      excess -= this.slots[mod(slot)]!;
      freeMs = this.lastMs[mod(slot)]! + MINUTE_MS;
    }
    return secondsUntil(freeMs, atMs);
  }

  /** Nothing taken within the last minute: the window may be dropped. */
  idle(atMs: number): boolean {
    return this.taken(atMs) === 0;
  }

  private leave(atMs: number): void {
    while (this.oldest <= this.newest && this.lastMs[mod(this.oldest)]! + MINUTE_MS <= atMs) {
      this.sum -= this.slots[mod(this.oldest)]!;
      this.slots[mod(this.oldest)] = 0;
      this.oldest += 1;
    }
    if (this.oldest > this.newest) this.oldest = Number.POSITIVE_INFINITY;
  }
}

const mod = (slot: number): number => ((slot % SLOTS) + SLOTS) % SLOTS;

/** An amount that was taken from several windows, until its true size is known. */
export class TakenAmount {
  private readonly slots: readonly number[];

  constructor(
    private readonly windows: readonly RateWindow[],
    private amount: number,
    private readonly clock: Pick<Clock, "elapsedMs">,
  ) {
    this.slots = windows.map((window) => window.take(amount, clock.elapsedMs()));
  }

  /** It turned out to be so much in all. */
  adjustTo(amount: number): void {
    for (const [n, window] of this.windows.entries())
      window.adjust(this.slots[n]!, amount - this.amount, this.clock.elapsedMs());
    this.amount = amount;
  }
}
