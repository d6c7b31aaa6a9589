import { refused } from "../../errors/refusal.ts";
import type { Payment, PaymentChange } from "../../payments/payment.ts";
import type { Added, PaymentCap } from "../../payments/payment-store.ts";
import { assert } from "../../units/assert.ts";
import type { Clock, EpochMs } from "../../units/clock.ts";
import type { PaymentId } from "../../units/id.ts";
import { SqlPaymentStore } from "../sql/payment-store.ts";
import type { SqlDatabase } from "../sql/statement.ts";
import type { KeeperOperations } from "./operations.ts";
import { decideWith } from "./proposal.ts";

/** Payments for a node: read in the database, and changed by its keeper, which credits them. */
export class KeeperPaymentStore extends SqlPaymentStore {
  constructor(
    db: SqlDatabase,
    clock: Pick<Clock, "now">,
    private readonly keeper: KeeperOperations,
  ) {
    super(db, clock);
  }

  override add(payment: Payment, caps: readonly PaymentCap[]): Promise<Added> {
    return this.keeper.addPayment(payment, caps);
  }

  override async change(id: PaymentId, decide: (payment: Payment) => PaymentChange | null): Promise<Payment> {
    const done = await decideWith((proposal) => this.keeper.changePayment(id, proposal), decide);
    assert(!refused(done), "a payment was refused");
    return done.result;
  }

  override claim(now: EpochMs, until: EpochMs, limit: number): Promise<readonly Payment[]> {
    return this.keeper.claimPayments(now, until, limit);
  }
}
