import type { BalanceId } from "../units/id.ts";

/**
 * The customers that were last sent to a host that is not their first choice, to learn whether it has become faster. A few
 * different customers have to measure it within a minute; otherwise the busiest one would make all measurements. Requests
 * that prefer the host anyway do not count, because they could keep others from exploring it.
 */
export class ExplorationLog {
  /** One entry per customer, newest last. */
  private readonly last: { readonly by: BalanceId; readonly atMs: number }[] = [];

  note(by: BalanceId, nowMs: number): void {
    const own = this.last.findIndex((entry) => entry.by === by);
    if (own !== -1) this.last.splice(own, 1);
    else if (this.last.length === ENOUGH) this.last.shift();
    this.last.push({ by, atMs: nowMs });
  }

  /** Milliseconds since the last exploration, Infinity if there was none; 0 if this customer should not explore. */
  dueMs(by: BalanceId, nowMs: number): number {
    const newest = this.last.at(-1)?.atMs;
    if (newest === undefined) return Number.POSITIVE_INFINITY;
    const own = this.last.find((entry) => entry.by === by)?.atMs ?? Number.NEGATIVE_INFINITY;
    if (nowMs - own < EACH_AFTER_MS) return 0;
    const isEnough = this.last.length === ENOUGH && nowMs - this.last[0]!.atMs < LATELY_MS;
    return isEnough ? 0 : Math.max(nowMs - newest, 1);
  }
}

/** Once this many customers have explored lately, no more are sent. */
const ENOUGH = 5;
const LATELY_MS = 60_000;
const EACH_AFTER_MS = 15_000;
