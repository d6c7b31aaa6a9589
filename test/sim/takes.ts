import type { CounterId } from "../../src/ledger/counter.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import { WINDOW_KINDS, windowAt } from "../../src/units/window.ts";
import { type BookedReceipt, isStopped, type SimulatedRequest } from "./auditor.ts";
import type { Holders } from "./holders.ts";
import { check } from "./world.ts";

/**
 * Judges what is taken while limits change. Looks between any two turns, before and after each change: nothing has
 * grown beyond the limit of that moment, whatever it was before; nothing that is held for a key that may not spend
 * has grown at all; and nobody's stream is stopped who had room all the while. At the end, what each window of the
 * budgets says is what the receipts come to.
 */
export class Takes {
  private used = new Map<CounterId, number>();
  private held = new Map<string, { readonly amount: number; readonly mayGrow: boolean }>();
  /** Requests that were short of something, or whose key was not known or could not spend, at some look. */
  private readonly tight = new Set<SimulatedRequest>();

  constructor(private readonly holders: Holders) {}

  /** A process has ended: the next one begins with what the books say. */
  reset(): void {
    this.used.clear();
    this.held.clear();
  }

  check(ledger: Ledger, asks: Iterable<SimulatedRequest>, now: EpochMs, elapsedMs: number): void {
    const { holders } = this;
    const checked = [...asks].filter((request) => request.outcome === "open" && !this.tight.has(request));
    const room = new Map<string, number>();
    for (const { id, spent, held } of ledger.counters.booked()) {
      const used = spent + held;
      const before = this.used.get(id);
      const hasGrown = before !== undefined && used > before;
      if (used !== before) this.used.set(id, used);
      if (!hasGrown && checked.length === 0) continue;
      const limit = holders.limitOn(id, now);
      check(!hasGrown || used <= limit, `${id} grew from ${before} to ${used}, above ${limit}`);
      const subject = id.split(":", 2).join(":");
      room.set(subject, Math.min(room.get(subject) ?? Infinity, limit - used));
    }
    const before = this.held;
    this.held = new Map();
    for (const record of ledger.openRecords()) {
      if (record.kind !== "hold") continue;
      const { receipt, key, amount } = record;
      const mayGrow = holders.maySpend(key, now);
      this.held.set(receipt, { amount, mayGrow });
      const last = before.get(receipt);
      if (last !== undefined && !last.mayGrow && !mayGrow)
        check(
          amount <= last.amount,
          `${receipt} grew from ${last.amount} to ${amount}, although ${key} may not spend`,
        );
    }
    for (const request of checked) {
      const { id, balanceId, budgets } = holders.latest(request.key);
      const credit =
        (ledger.counters.ofBalance(balanceId)?.credited ?? 0) -
        (this.used.get(`balance:${balanceId}` as CounterId) ?? 0);
      const subjects = [
        `day:${request.chain}`,
        `month:${request.chain}`,
        ...budgets.map((name) => `budget:${holders.budgetId(name)}`),
      ];
      const least = Math.min(credit, ...subjects.map((subject) => room.get(subject) ?? Infinity));
      if (least < ROOMY || holders.isReading(elapsedMs) || !holders.maySpend(id, now))
        this.tight.add(request);
    }
  }

  wasTight(request: SimulatedRequest): boolean {
    return this.tight.has(request);
  }

  judge(
    asks: readonly SimulatedRequest[],
    receipts: readonly BookedReceipt[],
    spent: (id: CounterId) => number,
  ): void {
    for (const request of asks) {
      check(
        !isStopped(request) || this.tight.has(request),
        `${request.name} was stopped, with room all the while`,
      );
    }
    const draws = new Map(asks.map(({ key }) => [key.id as string, key.budgets.length > 0]));
    const sums = new Map<string, number>();
    for (const { keyId, at, charged } of receipts) {
      if (!draws.get(keyId)) continue;
      for (const kind of WINDOW_KINDS) {
        const window = `${kind}:${windowAt(kind, at as EpochMs).startsAt}`;
        sums.set(window, (sums.get(window) ?? 0) + charged);
      }
    }
    for (const [window, sum] of sums) {
      let counted = 0;
      for (const budget of this.holders.budgetIds)
        counted += spent(`budget:${budget}:${window}` as CounterId);
      check(counted === sum, `budgets count ${counted} in ${window}, and receipts come to ${sum}`);
    }
  }
}

/** More than the least step by which a stream grows, and than what another request takes in the same turn. */
const ROOMY = 250_000;
