import type { BalanceId } from "../units/id.ts";

/**
 * Who was last sent to a host that is not their first choice, to learn whether it has become faster. A few customers
 * have to see it within a minute: if one were enough, the busiest customer would see all of it. Requests that go
 * there by themselves do not count, or they could keep everybody else from finding out.
 */
export class ExplorationLog {
  /** Newest last; of one customer each. */
  private readonly last: { readonly by: BalanceId; readonly atMs: number }[] = [];

  note(by: BalanceId, nowMs: number): void {
    const own = this.last.findIndex((entry) => entry.by === by);
    if (own !== -1) this.last.splice(own, 1);
    else if (this.last.length === ENOUGH) this.last.shift();
    this.last.push({ by, atMs: nowMs });
  }

  /** Milliseconds since anybody looked, Infinity if nobody did; 0 where this customer is not to. */
  dueMs(by: BalanceId, nowMs: number): number {
    const newest = this.last.at(-1)?.atMs;
    if (newest === undefined) return Number.POSITIVE_INFINITY;
    const own = this.last.find((entry) => entry.by === by)?.atMs ?? Number.NEGATIVE_INFINITY;
    if (nowMs - own < EACH_AFTER_MS) return 0;
    const isEnough = this.last.length === ENOUGH && nowMs - this.last[0]!.atMs < LATELY_MS;
    return isEnough ? 0 : Math.max(nowMs - newest, 1);
  }
}

/** Customers who have looked lately, from which number on no others are sent. */
const ENOUGH = 5;
const LATELY_MS = 60_000;
const EACH_AFTER_MS = 15_000;
