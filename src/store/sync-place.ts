/**
 * Where a sync is waited for. On the event loop it takes half the CPU and answers soonest, but everything else stands still: that is
 * for a fast disk and few who wait. Otherwise it goes to a thread of Bun's pool. A disk may become slow, and fast again, while
 * the gateway runs, so every sync on the loop is measured.
 */
export class SyncPlace {
  private meanMs: number;
  private awayUntilMs: number;

  /** `slowMs` is what a slow sync of this disk takes. Times are monotonic. */
  constructor(slowMs: number, nowMs: number) {
    this.meanMs = Math.min(slowMs, LOOP_MS);
    this.awayUntilMs = slowMs > LOOP_MS ? nowMs + AWAY_MS : nowMs;
  }

  /** Whether a sync that `lines` of the journal wait for is to be done on the loop. */
  onLoop(lines: number, nowMs: number): boolean {
    return lines < MANY_LINES && nowMs >= this.awayUntilMs;
  }

  /** One on the loop took so long. */
  took(ms: number, nowMs: number): void {
    this.meanMs += (Math.min(ms, HICCUP_MS) - this.meanMs) / OF_THE_LAST;
    if (this.meanMs <= LOOP_MS) return;
    this.awayUntilMs = nowMs + AWAY_MS;
    // The first that is slow again says enough.
    this.meanMs = LOOP_MS;
  }
}

/** Where a sync takes longer than this, it would stall every stream. */
export const LOOP_MS = 0.5;
/** Where so many wait, the loop has that much else to do meanwhile. */
const MANY_LINES = 16;
const OF_THE_LAST = 8;
/** One that took longer counts as this: two of them in a row are needed. */
const HICCUP_MS = 2;
/** Then one is tried on the loop again. */
const AWAY_MS = 30_000;
