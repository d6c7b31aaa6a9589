/**
 * Decides where to sync. On the event loop, a sync takes half the CPU and is done soonest, but everything
 * else stands still: right for a fast disk with few waiting. Otherwise it goes to a thread of Bun's pool. A
 * disk may become slow, and fast again, while the gateway runs, so every sync on the loop is measured.
 */
export class SyncPlace {
  private meanMs: number;
  private awayUntilMs: number;

  /** `slowMs` is how long a slow sync of this disk takes. Times are monotonic. */
  constructor(slowMs: number, nowMs: number) {
    this.meanMs = Math.min(slowMs, LOOP_MS);
    this.awayUntilMs = slowMs > LOOP_MS ? nowMs + AWAY_MS : nowMs;
  }

  /** Whether a sync that `lines` of the journal wait for is to be done on the loop. */
  onLoop(lines: number, nowMs: number): boolean {
    return lines < MANY_LINES && nowMs >= this.awayUntilMs;
  }

  /** A sync on the loop took `ms`. */
  took(ms: number, nowMs: number): void {
    this.meanMs += (Math.min(ms, HICCUP_MS) - this.meanMs) / OF_THE_LAST;
    if (this.meanMs <= LOOP_MS) return;
    this.awayUntilMs = nowMs + AWAY_MS;
    // After the pause, a single slow sync is enough to leave again.
    this.meanMs = LOOP_MS;
  }
}

/** Where a sync takes longer than this, it would stall every stream. */
export const LOOP_MS = 0.5;
/** When this many lines wait, the loop has enough else to do in the meantime. */
const MANY_LINES = 16;
const OF_THE_LAST = 8;
/** A longer sync counts as this, so that it takes two in a row to leave the loop. */
const HICCUP_MS = 2;
/** Then one is tried on the loop again. */
const AWAY_MS = 30_000;
