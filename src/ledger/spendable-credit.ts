import { boundedCache } from "../units/bounded-cache.ts";
import type { Clock } from "../units/clock.ts";
import type { BalanceId } from "../units/id.ts";
import { SingleFlight } from "../units/single-flight.ts";
import { type NanoUsd, ZERO_USD } from "../units/usd.ts";
import type { BalanceTotals } from "./balance-view.ts";

/**
 * What balances could pay once nothing is held, asked before work is done for a request that may turn out to be
 * unpaid.
 */
export class SpendableCredit {
  /** Balances without credit, and when that was read: each request of theirs would read the store again. */
  private readonly poor = boundedCache<BalanceId, number>(MAX_POOR);
  /** One a balance, so there are no more than requests in flight. */
  private readonly loading = new SingleFlight<BalanceId, NanoUsd>();

  constructor(
    private readonly ledger: {
      /** Null where only the store knows whether it is enough. */
      creditInMemory(id: BalanceId, enough: number): NanoUsd | null;
    },
    private readonly balance: (id: BalanceId) => Promise<BalanceTotals>,
    private readonly clock: Pick<Clock, "elapsedMs">,
  ) {}

  /**
   * Credit that is not spent; of a balance without, up to five seconds old. A node may have been granted only a part of
   * it, and tells that part where it is `enough`.
   */
  of(id: BalanceId, enough = ANY): NanoUsd | Promise<NanoUsd> {
    return this.ledger.creditInMemory(id, enough) ?? this.load(id);
  }

  /** What is known of it without waiting; null where nothing is, and then it is asked for. */
  known(id: BalanceId): NanoUsd | null {
    const credit = this.ledger.creditInMemory(id, ANY);
    if (credit !== null) return credit;
    const readMs = this.poor.get(id);
    if (readMs === undefined || this.clock.elapsedMs() - readMs >= BELIEVED_MS) {
      // Callers that need the store get its error themselves.
      this.load(id).catch(() => {});
      return null;
    }
    return ZERO_USD;
  }

  private load(id: BalanceId): Promise<NanoUsd> {
    return this.loading.do(id, () => this.read(id));
  }

  private async read(id: BalanceId): Promise<NanoUsd> {
    const nowMs = this.clock.elapsedMs();
    const readMs = this.poor.get(id);
    if (readMs !== undefined && nowMs - readMs < BELIEVED_MS) return ZERO_USD;
    const { total } = await this.balance(id);
    if (total > 0) this.poor.delete(id);
    else this.poor.set(id, nowMs);
    return total;
  }
}

/** Nano-dollars. */
const ANY = 1;
const BELIEVED_MS = 5_000;
const MAX_POOR = 10_000;
