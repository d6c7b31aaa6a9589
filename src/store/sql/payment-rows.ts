import type { Credit } from "../../ledger/credit.ts";
import {
  CAME_TO_NOTHING,
  type Payment,
  type PaymentChange,
  type PaymentState,
  paymentKey,
} from "../../payments/payment.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { NanoUsd } from "../../units/usd.ts";
import type { RowRead } from "./statement.ts";

/** A row of `payments`. */
export type PaymentRow = RowRead<ReturnType<typeof rowOf>>;

export const paymentFromRow = (row: PaymentRow): Payment => ({
  id: row.id,
  rail: row.rail,
  external: row.external,
  balanceId: row.balance_id,
  keyId: row.key_id,
  state: row.state,
  amount: Number(row.amount) as NanoUsd,
  payer: row.payer,
  transaction: row.transaction,
  reason: row.reason,
  order: row.order,
  idempotencyKey: row.idempotency_key,
  isInline: Number(row.is_inline) === 1,
  credited: Number(row.credited) as NanoUsd,
  lost: Number(row.lost) as NanoUsd,
  createdAt: Number(row.created_at) as EpochMs,
  changedAt: Number(row.changed_at) as EpochMs,
  lookAt: row.look_at === null ? null : (Number(row.look_at) as EpochMs),
});

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

/** What becomes of a payment that the balance cannot hold. */
export const TOO_MUCH: PaymentChange = {
  state: "held",
  reason: "The balance has been credited with as much as is counted exactly.",
  lookAt: null,
};

function listed(states: readonly PaymentState[]): string {
  return states.map((state) => `'${state}'`).join(", ");
}
