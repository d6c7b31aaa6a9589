import type { EpochMs } from "../units/clock.ts";
import { StoreUnreachable } from "../units/errors/bookkeeping.ts";
import type { BalanceId } from "../units/id.ts";
import { type NanoUsd, ZERO_USD } from "../units/usd.ts";
import { type Credit, type CreditClaim, type Debit, debitEntry, lostOf, type TooMuch } from "./credit.ts";
import type { Ledger } from "./ledger.ts";

/**
 * Takes credit back from the only ledger. It holds the amount in the turn in which it is available, so no request can spend it
 * while the books are written.
 */
export class Debits {
  /** One debit of a balance at a time, because an earlier one may still fail. Bounded by the operator's requests in flight. */
  private readonly underWay = new Map<BalanceId, Promise<unknown>>();
  /** Lost to claims since start. */
  lost: NanoUsd = ZERO_USD;

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
    const known = this.store.entry(idempotencyKey);
    if (known !== null) return known;
    const held = await this.ledger.holdDebit(balanceId, debit.amount);
    if ("available" in held) return held;
    try {
      // A request's unused hold is available once its end is durable. If a crash lost the end, recovery would charge the last
      // checkpoint, for which there might not be enough left.
      if (!(await this.journal.flushed())) throw new StoreUnreachable("the journal cannot be written");
      return this.store.debit(debitEntry(debit, held));
    } finally {
      // The store may have committed although it failed to answer, so it is read. If that fails too, the amount stays held
      // until the next start.
      this.ledger.endDebit(balanceId, held.amount, this.store.credited(balanceId));
    }
  }

  /** Ends claims that open requests have covered, and claims whose last request has ended: the rest of these is lost. */
  async endClaims(at: EpochMs): Promise<void> {
    for (let after = "", claims: readonly CreditClaim[]; ; after = claims.at(-1)!.idempotencyKey) {
      claims = this.store.claims(after, CLAIMS_AT_A_TIME);
      for (const claim of claims) await this.endClaim(claim, at);
      if (claims.length < CLAIMS_AT_A_TIME) return;
    }
  }

  private async endClaim(claim: CreditClaim, at: EpochMs): Promise<void> {
    const { balanceId } = claim;
    await this.ledger.balance(balanceId);
    const lost = lostOf(claim, this.ledger.shortage(balanceId));
    if (lost === null || !(await this.journal.flushed())) return;
    // Ends that are not durable yet might be charged otherwise after a crash.
    if (lostOf(claim, this.ledger.shortage(balanceId)) !== lost) return;
    // A claim that a payment's credit has reduced meanwhile is left to the next round.
    if (!this.store.endClaim(claim, lost, at)) return;
    if (lost > 0) this.ledger.credited(balanceId, lost);
    this.lost = (this.lost + lost) as NanoUsd;
  }
}

/** The part of `LedgerStore` that is needed here. */
export interface DebitStore {
  entry(idempotencyKey: string): Credit | null;
  debit(entry: Credit): Credit;
  credited(balance: BalanceId): NanoUsd;
  /** Open claims after this key, in the order of their keys. */
  claims(after: string, limit: number): readonly CreditClaim[];
  /** False, without an effect, if the claim has changed since it was read. */
  endClaim(claim: CreditClaim, lost: NanoUsd, at: EpochMs): boolean;
}

const CLAIMS_AT_A_TIME = 64;
