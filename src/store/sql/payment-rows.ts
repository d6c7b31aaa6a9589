import type { Credit } from "../../ledger/credit.ts";
import {
  CAME_TO_NOTHING,
  type Payment,
  type PaymentChange,
  type PaymentState,
  paymentKey,
} from "../../payments/payment.ts";
import { part } from "./statement.ts";

/** A payment's columns, under the names of its members. */
export const PAYMENT = part`id, rail, external, balance_id AS "balanceId", key_id AS "keyId", state, amount, payer,
  "transaction", reason, "order", idempotency_key AS "idempotencyKey", is_inline AS "isInline", credited, lost, should_be AS "shouldBe", gas, wasted_at AS "wastedAt",
  created_at AS "createdAt", changed_at AS "changedAt", look_at AS "lookAt"`;

export type PaymentRow = Omit<Payment, "isInline"> & { readonly isInline: 0 | 1 };

export const paymentFromRow = (row: PaymentRow): Payment => ({ ...row, isInline: row.isInline === 1 });

/** The payment as a row of its table. */
export const rowOf = (payment: Payment) => ({
  id: payment.id,
  rail: payment.rail,
  external: payment.external,
  balance_id: payment.balanceId,
  key_id: payment.keyId,
  state: payment.state,
  amount: payment.amount,
  payer: payment.payer,
  transaction: payment.transaction,
  reason: payment.reason,
  order: payment.order,
  idempotency_key: payment.idempotencyKey,
  is_inline: payment.isInline ? 1 : 0,
  credited: payment.credited,
  lost: payment.lost,
  should_be: payment.shouldBe,
  gas: payment.gas,
  wasted_at: payment.wastedAt,
  created_at: payment.createdAt,
  changed_at: payment.changedAt,
  look_at: payment.lookAt,
});

/** States that count against no limit, as SQL lists them. */
export const NOTHING_STATES = listed(CAME_TO_NOTHING);
/** States in which it may cost gas and bring nothing. */
export const MAY_FAIL_STATES = listed(["created", "submitted"]);
/** States in which a card's page is open, or what was entered there is not through. */
export const WAITING_STATES = listed(["created", "submitted", "confirming"]);

/** The entry that credits the balance; null for a change that credits nothing. */
export function creditOf(
  { id, balanceId, rail, changedAt }: Payment,
  { credit }: PaymentChange,
): Credit | null {
  if (credit === undefined) return null;
  const { amount, purpose } = credit;
  return { balanceId, amount, idempotencyKey: paymentKey(id, purpose), note: rail, at: changedAt };
}

function listed(states: readonly PaymentState[]): string {
  return states.map((state) => `'${state}'`).join(", ");
}
