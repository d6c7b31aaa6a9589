import { type OperatorsPayment, PAYMENTS } from "../../api/payments.ts";
import type { Payment } from "../../payments/payment.ts";
import { paymentKey } from "../../payments/payment.ts";
import type { CardDecision } from "../../payments/rails/stripe/card-rail.ts";
import { type Refusal, refuse } from "../../units/errors/refusal.ts";
import type { BalanceId, PaymentId } from "../../units/id.ts";
import { formatUsd, type NanoUsd, usdFromNano, ZERO_USD } from "../../units/usd.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint } from "../endpoint.ts";
import { noPayment, paymentView } from "../endpoints/payments.ts";
import { operation } from "../operation.ts";
import { ok, page } from "../reply.ts";

/** Payments as their operator sees them, and what only an operator can decide about them. */
export const adminPaymentEndpoints = (): Endpoint[] => [
  operation("GET /admin/payments", PAYMENTS.adminList, async ({ query }, { payments }) => {
    const { limit, before, state, balance } = query;
    const of = { balanceId: balance as BalanceId | null, keyId: null, state };
    return page(await payments!.store.list(of, limit + 1, before as PaymentId | null), limit, operatorsView);
  }),
  operation("POST /admin/payments/:id/refund", PAYMENTS.refund, async ({ params: { id } }, deps) => {
    const payment = await deps.payments!.store.find(id as PaymentId);
    return payment === null ? noPayment(id) : refund(payment, deps);
  }),
  operation(
    "POST /admin/payments/:id/resolve",
    PAYMENTS.resolve,
    async ({ params, fields }, { payments }) => {
      const { store, card } = payments!;
      const { as, note = null } = fields;
      const payment = await store.find(params.id as PaymentId);
      if (payment === null) return noPayment(params.id);
      if (payment.rail === "card" && card !== null)
        return answered(await card.resolve(payment, as, note), payment, "held");
      const decided = await store.change(payment.id, ({ state, amount, reason }) =>
        state !== "held"
          ? null
          : {
              state: as,
              reason: note ?? reason,
              nextPollAt: null,
              ...(as === "credited" && amount > 0 ? { credit: { amount }, shouldBe: amount } : {}),
            },
      );
      return decided.state === as ? ok(operatorsView(decided)) : notIn("held", decided);
    },
  ),
];

/** The debit comes first: a payment that says it is refunded has nothing left to be spent. */
async function refund(payment: Payment, { ledger, payments, keyDeps }: HttpDeps) {
  const { id, balanceId, credited, rail } = payment;
  if (payment.state === "refunded") return ok(operatorsView(payment));
  if (rail === "card" && payments!.card !== null)
    return answered(await payments!.card.refund(payment), payment, "credited");
  if (payment.state !== "credited" || rail !== "x402") return notIn("credited", payment);
  // A chain that is reorganised next to it would have the credit taken back a second time.
  if (payment.nextPollAt !== null) return notFinal();
  const done = await ledger.debit({
    balanceId,
    amount: credited,
    idempotencyKey: paymentKey(id, "refund"),
    note: `refund of ${id}`,
    at: keyDeps.clock.now(),
  });
  if ("available" in done) return tooLittle(credited, done.available);
  const refunded = await payments!.store.change(id, ({ state }) =>
    state === "credited"
      ? {
          state: "refunded",
          debited: credited,
          shouldBe: ZERO_USD,
          nextPollAt: null,
          reason: `The operator sends it back to ${payment.payer}.`,
        }
      : null,
  );
  return ok(operatorsView(refunded));
}

/** What became of a decision about a card payment that should have been in that state. */
function answered(done: CardDecision, payment: Payment, state: "credited" | "held") {
  switch (done) {
    case "not refundable":
    case "not held":
      return notIn(state, payment);
    case "under way":
      return underWay();
    case "no answer":
      return noAnswer();
    case "worth unknown":
      return worthUnknown(payment);
    default:
      return "available" in done ? tooLittle(payment.credited, done.available) : ok(operatorsView(done));
  }
}

const noAnswer = (): Refusal =>
  refuse(
    "internal_error",
    "It is decided, and the card processor has not answered yet; the log says why. A refund has taken the credit back, and the card has no money yet. Repeat the request.",
    { retryAfterS: 5 },
  );

const worthUnknown = ({ reason }: Payment): Refusal =>
  refuse(
    "invalid_request",
    `${reason} What that is worth in USD is not known, so it cannot become credit. Resolve it as \`refunded\`, which refunds the card; or keep it, and add what it is worth with POST /admin/credits.`,
  );

const underWay = (): Refusal =>
  refuse(
    "internal_error",
    "A refund of this payment is under way; one that was cut off is taken up within 30 s. Repeat the request.",
    { retryAfterS: 5 },
  );

const notIn = (state: string, payment: Payment): Refusal =>
  refuse(
    "invalid_request",
    `The payment is ${payment.state}, and only one that is ${state} can be decided about so.`,
  );

const notFinal = (): Refusal =>
  refuse(
    "invalid_request",
    "The payment is not final on its chain yet, which may still take it back. Nothing was taken back. Retry later.",
  );

const tooLittle = (credited: NanoUsd, available: NanoUsd): Refusal =>
  refuse(
    "invalid_request",
    `The payment's ${formatUsd(credited)} cannot be taken back: ${formatUsd(available)} is available now. Nothing was taken back.`,
  );

const operatorsView = (payment: Payment): OperatorsPayment => ({
  ...paymentView(payment),
  balance_id: payment.balanceId,
  key_id: payment.keyId,
  lost_usd: usdFromNano(payment.lost),
  inline: payment.isInline,
});
