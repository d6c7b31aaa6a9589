/**
 * Counts what was taken in the last minute, in slots of a second, so that a limit holds in *every* span of 60 seconds. A
 * token bucket costs less memory but lets twice the limit pass within a minute (a full bucket, then its refill), and a
 * fixed window lets it pass around the turn of the minute.
 *
 * Times are monotonic milliseconds: a wall clock that jumps must not lift a limit.
 */
const SLOT_MS = 1_000;
/** The minute, and the slot that is only partly past it: a slot leaves when its *last* moment is a minute old. */
const SLOTS = 61;

export class RateWindow {
  private readonly slots = new Float64Array(SLOTS);
  private newest = Number.NEGATIVE_INFINITY;
  private sum = 0;

  /** Amount taken within the last minute. */
  taken(atMs: number): number {
    this.advance(slotOf(atMs));
    return this.sum;
  }

  /** Takes the amount at this moment; returns the slot, for `adjust`. */
  take(amount: number, atMs: number): number {
    const slot = slotOf(atMs);
    this.advance(slot);
    this.slots[mod(slot)]! += amount;
    this.sum += amount;
    return slot;
  }

  /** Corrects an amount taken earlier, once its true size is known; without effect when its slot has left the minute. */
  adjust(slot: number, by: number, atMs: number): void {
    this.advance(slotOf(atMs));
    if (slot <= this.newest - SLOTS) return;
    this.slots[mod(slot)]! += by;
    this.sum += by;
  }

  /** Whole seconds until `amount` fits under `limit`, at least 1; null when it never will. */
  secondsUntilFits(amount: number, limit: number, atMs: number): number | null {
    if (amount > limit) return null;
    this.advance(slotOf(atMs));
    let excess = this.sum + amount - limit;
    for (let slot = this.newest - SLOTS + 1; slot <= this.newest; slot++) {
      if (excess <= 0) return secondsBetween(atMs, slot - 1);
      excess -= this.slots[mod(slot)]!;
    }
    return secondsBetween(atMs, this.newest);
  }

  /** Nothing taken within the last minute: the window may be dropped. */
  idle(atMs: number): boolean {
    return this.taken(atMs) === 0;
  }

  private advance(slot: number): void {
    if (slot <= this.newest) return;
    const steps = Math.min(slot - this.newest, SLOTS);
    for (let step = 0; step < steps; step++) {
      const index = mod(slot - step);
      this.sum -= this.slots[index]!;
      this.slots[index] = 0;
    }
    this.newest = slot;
  }
}

const slotOf = (atMs: number): number => Math.floor(atMs / SLOT_MS);
const mod = (slot: number): number => ((slot % SLOTS) + SLOTS) % SLOTS;
/** The slot is gone once SLOTS slots have begun after it. */
const secondsBetween = (atMs: number, lastSlotToLeave: number): number =>
  Math.max(1, Math.ceil(((lastSlotToLeave + SLOTS) * SLOT_MS - atMs) / 1_000));
