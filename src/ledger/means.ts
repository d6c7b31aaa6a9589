import { LRUCache } from "lru-cache";
import type { Clock } from "../units/clock.ts";
import type { BalanceId } from "../units/id.ts";
import { type NanoUsd, ZERO_USD } from "../units/usd.ts";
import type { BalanceView } from "./ledger.ts";

/** What balances could pay, asked before work is done for a request that may turn out to be unpaid. */
export class Means {
  /** Balances without credit, and when that was heard: each request of theirs would ask the store again. */
  private readonly poor = new LRUCache<BalanceId, number>({ max: MAX_POOR });

  constructor(
    private readonly ledger: {
      /** Null where only the store knows. */
      creditInMemory(id: BalanceId): NanoUsd | null;
    },
    private readonly balance: (id: BalanceId) => Promise<BalanceView>,
    private readonly clock: Pick<Clock, "elapsedMs">,
  ) {}

  /** Credit that is neither spent nor held; of a balance without, up to five seconds old. */
  of(id: BalanceId): NanoUsd | Promise<NanoUsd> {
    return this.ledger.creditInMemory(id) ?? this.load(id);
  }

  private async load(id: BalanceId): Promise<NanoUsd> {
    const nowMs = this.clock.elapsedMs();
    const heardMs = this.poor.get(id);
    if (heardMs !== undefined && nowMs - heardMs < BELIEVED_MS) return ZERO_USD;
    const { available } = await this.balance(id);
    if (available > 0) this.poor.delete(id);
    else this.poor.set(id, nowMs);
    return available;
  }
}

const BELIEVED_MS = 5_000;
const MAX_POOR = 10_000;
