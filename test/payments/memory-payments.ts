import { advanced, heldInstead, type Payment } from "../../src/payments/payment.ts";
import type { PaymentStore } from "../../src/payments/payment-store.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import type { PaymentId } from "../../src/units/id.ts";

/** Payments in memory, with the credit that they give in the same step. */
export class MemoryPayments implements Pick<PaymentStore, "change" | "list"> {
  private readonly payments = new Map<PaymentId, Payment>();
  /** By idempotency key's purpose. */
  credited = 0;
  /** The most that the balance may be credited with. */
  room = Number.POSITIVE_INFINITY;

  put(payment: Payment): void {
    this.payments.set(payment.id, payment);
  }

  get(id: PaymentId): Payment {
    return this.payments.get(id)!;
  }

  async change(...[id, decide]: Parameters<PaymentStore["change"]>): Promise<Payment> {
    const payment = this.payments.get(id)!;
    const change = decide(payment);
    const next = change === null ? null : advanced(payment, change, 0 as EpochMs);
    if (change === null || next === null) return payment;
    const amount = change.credit?.amount ?? 0;
    const hasRoom = this.credited + amount <= this.room;
    if (hasRoom) this.credited += amount;
    const after = hasRoom ? next : advanced(payment, heldInstead(next), next.changedAt)!;
    this.payments.set(id, after);
    return after;
  }

  async list(
    ...[{ balanceId, state }, limit]: Parameters<PaymentStore["list"]>
  ): Promise<readonly Payment[]> {
    return [...this.payments.values()]
      .filter((one) => one.balanceId === balanceId && (state === null || one.state === state))
      .slice(0, limit);
  }
}
