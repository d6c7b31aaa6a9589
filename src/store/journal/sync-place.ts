/**
 * Decides where to sync. On the event loop, a sync takes half the CPU and is done soonest, but everything
 * else stands still: right for a fast disk with few waiting. Otherwise it goes to a thread of Bun's pool. A
 * disk may become slow, and fast again, while the gateway runs, so every sync on the loop is measured. What is
 * measured also has the moments in which another process had the core: a few slow ones do not mean the disk.
 */
export class SyncPlace {
  /** The last syncs on the loop, a bit each, 1 for a slow one. */
  private recent = 0;
  private awayMs = FIRST_AWAY_MS;
  private awayUntilMs: number;

  /** `slowMs` is how long a slow sync of this disk takes. Times are monotonic. */
  constructor(slowMs: number, nowMs: number) {
    this.awayUntilMs = nowMs;
    if (slowMs > LOOP_MS) this.leave(nowMs);
  }

  /** Whether a sync that `lines` of the journal wait for is to be done on the loop. */
  onLoop(lines: number, nowMs: number): boolean {
    return lines < MANY_LINES && nowMs >= this.awayUntilMs;
  }

  /** A sync on the loop took `ms`. */
  took(ms: number, nowMs: number): void {
    this.recent = ((this.recent << 1) | (ms > LOOP_MS ? 1 : 0)) & LAST_EIGHT;
    if (this.recent === 0) this.awayMs = FIRST_AWAY_MS;
    if (slowOnes(this.recent) >= MANY_SLOW) this.leave(nowMs);
  }

  private leave(nowMs: number): void {
    this.awayUntilMs = nowMs + this.awayMs;
    this.awayMs = Math.min(2 * this.awayMs, MAX_AWAY_MS);
    this.recent = BACK;
  }
}

/** Where a sync takes longer than this, it would stall every stream. */
export const LOOP_MS = 0.5;
/** When this many lines wait, the loop has enough else to do in the meantime. */
const MANY_LINES = 16;
const LAST_EIGHT = 0xff;
/** Of the last eight. */
const MANY_SLOW = 4;
/** As if the last two had been slow: after a pause, two more are enough to leave again. */
const BACK = 0b11;
/** Then one is tried on the loop again; each pause is twice as long, until eight in a row were fast. */
const FIRST_AWAY_MS = 1_000;
const MAX_AWAY_MS = 60_000;

function slowOnes(recent: number): number {
  let count = 0;
  for (let left = recent; left > 0; left >>= 1) count += left & 1;
  return count;
}
