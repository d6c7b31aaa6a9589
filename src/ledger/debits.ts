import type { EpochMs } from "../units/clock.ts";
import { StoreUnreachable } from "../units/errors/bookkeeping.ts";
import type { BalanceId } from "../units/id.ts";
import { type NanoUsd, ZERO_USD } from "../units/usd.ts";
import { type Credit, type CreditClaim, type Debit, debitEntry, lostOf, type TooMuch } from "./credit.ts";
import type { Ledger } from "./ledger.ts";

/**
 * Takes credit back where one ledger has all of it. What is to be taken is held first, in the turn in which
 * it is found available, so no request can spend it while the books are written.
 */
export class Debits {
  /** One at a time of a balance: what another one holds may yet be given back. Bounded by the operator's requests in flight. */
  private readonly underWay = new Map<BalanceId, Promise<unknown>>();
  /** Lost to claims since start. */
  lost: NanoUsd = ZERO_USD;

  constructor(
    private readonly ledger: Ledger,
    private readonly journal: { flushed(): Promise<boolean> },
    private readonly store: DebitStore,
  ) {}

  /**
   * Durable when it resolves, with what was done under the idempotency key, now or before. A repeat that
   * comes while the first is under way waits for it.
   */
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
      // What a request was charged less than it held is available. Were its end lost with the process, it
      // would be ended at its last checkpoint instead, which may cost more than would then be left.
      if (!(await this.journal.flushed())) throw new StoreUnreachable("the journal cannot be written");
      return this.store.debit(debitEntry(debit, held));
    } finally {
      // Asked of the store, which may have committed what it failed to answer. Where it cannot say, the
      // amount stays held until the next start.
      this.ledger.endDebit(balanceId, held.amount, this.store.credited(balanceId));
    }
  }

  /** Ends claims that open requests have covered, and those whose last request has ended: what is short then is lost. */
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
    // What ended meanwhile may not be on the disk yet, and would end with another charge after a crash.
    if (lostOf(claim, this.ledger.shortage(balanceId)) !== lost) return;
    // Nor is a claim ended that a payment's credit has made smaller meanwhile: the next round sees what is left of it.
    if (!this.store.endClaim(claim, lost, at)) return;
    if (lost > 0) this.ledger.credited(balanceId, lost);
    this.lost = (this.lost + lost) as NanoUsd;
  }
}

/** What is needed of the books; what each does is said at `LedgerStore`. */
export interface DebitStore {
  entry(idempotencyKey: string): Credit | null;
  debit(entry: Credit): Credit;
  credited(balance: BalanceId): NanoUsd;
  /** Open ones behind this key, in the order of their keys. */
  claims(after: string, limit: number): readonly CreditClaim[];
  /** False, and nothing is done, where the claim was ended or changed since it was read. */
  endClaim(claim: CreditClaim, lost: NanoUsd, at: EpochMs): boolean;
}

const CLAIMS_AT_A_TIME = 64;
