import type { EpochMs } from "../units/clock.ts";
import { StoreUnreachable } from "../units/errors/bookkeeping.ts";
import type { BalanceId } from "../units/id.ts";
import type { NanoUsd } from "../units/usd.ts";
import {
  type Credit,
  type CreditClaim,
  type Debit,
  lostOf,
  type TakenCredit,
  type TooMuch,
} from "./credit.ts";
import type { Ledger } from "./ledger.ts";

/**
 * Takes credit back from the only ledger. It holds the amount in the turn in which it is available, so no request can spend it
 * while the books are written.
 */
export class Debits {
  /** One debit of a balance at a time, because an earlier one may still fail. Bounded by the operator's requests in flight. */
  private readonly underWay = new Map<BalanceId, Promise<unknown>>();

  constructor(
    private readonly ledger: Ledger,
    private readonly journal: { flushed(): Promise<boolean> },
    private readonly store: DebitStore,
  ) {}

  /** Durable once it resolves, with the idempotency key's entry, new or earlier. A repeat waits for the first to end. */
  async take(debit: Debit): Promise<Credit | TooMuch> {
    const { balanceId } = debit;
    for (;;) {
      const other = this.underWay.get(balanceId);
      if (other === undefined) break;
      await other.catch(() => {});
    }
    const done = this.takeOnce(debit);
    this.underWay.set(balanceId, done);
    return done.finally(() => this.underWay.delete(balanceId));
  }

  private async takeOnce(debit: Debit): Promise<Credit | TooMuch> {
    const { balanceId, idempotencyKey } = debit;
    const known = await this.store.entry(idempotencyKey);
    if (known !== null) return known;
    const held = await this.ledger.holdDebit(balanceId, debit.amount);
    if ("available" in held) return held;
    try {
      // A request's unused hold is available once its end is durable. If a crash lost the end, recovery would charge the last
      // checkpoint, for which there might not be enough left.
      if (!(await this.journal.flushed())) throw new StoreUnreachable("the journal cannot be written");
      return await this.store.debit(debit, held);
    } finally {
      // The store may have committed although it failed to answer, so it is read. If that fails too, the amount stays held
      // until the next start.
      this.ledger.endDebit(balanceId, held.amount, this.store.credited(balanceId));
    }
  }

  /**
   * Ends a claim that open requests have covered, or whose last request has ended: the rest of it is lost. Resolves with that;
   * null while the claim has to stay open.
   */
  async decideClaim(claim: CreditClaim, at: EpochMs): Promise<NanoUsd | null> {
    const { balanceId } = claim;
    await this.ledger.balance(balanceId);
    const lost = lostOf(claim, this.ledger.shortage(balanceId));
    if (lost === null || !(await this.journal.flushed())) return null;
    // Ends that are not durable yet might be charged otherwise after a crash. A claim that a payment's credit has reduced
    // meanwhile is left to the next round.
    return this.store.decideClaim(claim, at, (claimed) =>
      claimed === claim.claimed && lostOf(claim, this.ledger.shortage(balanceId)) === lost ? lost : null,
    );
  }
}

/** The books of the only ledger. */
export interface DebitStore {
  entry(idempotencyKey: string): Promise<Credit | null>;
  debit(debit: Debit, holds: TakenCredit): Promise<Credit | TooMuch>;
  credited(balance: BalanceId): NanoUsd;
  /** Calls `lostOfClaimed` in the turn in which it reads what is claimed; null leaves the claim as it is. */
  decideClaim(
    claim: CreditClaim,
    at: EpochMs,
    lostOfClaimed: (claimed: NanoUsd) => NanoUsd | null,
  ): Promise<NanoUsd | null>;
}
