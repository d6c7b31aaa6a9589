import {
  type OperatorsPayment,
  PAYMENTS,
  type PaymentAnswer,
  type PaymentOptions,
} from "../../api/payments.ts";
import { type Payment, paymentKey } from "../../payments/payment.ts";
import type { CardDecision } from "../../payments/rails/stripe/card-rail.ts";
import { needsSaving, SAVE_FIRST } from "../../payments/rails/x402/inline.ts";
import { isoTime } from "../../units/clock.ts";
import { invalidField, type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import { suspension } from "../../units/errors/suspension-refusal.ts";
import type { BalanceId, PaymentId } from "../../units/id.ts";
import { idempotencyKeyOf } from "../../units/idempotency-key.ts";
import { formatUsd, type NanoUsd, usdFromNano, ZERO_USD } from "../../units/usd.ts";
import { againstForging, type Identity } from "../authentication.ts";
import type { HttpDeps } from "../deps.ts";
import { readUsd, repeated } from "../fields.ts";
import { type OperationRequest, operation } from "../operation.ts";
import { JsonReply, page } from "../reply.ts";
import { cardMethod, orderByCard } from "./card-orders.ts";
import { type CreditOrder, orderByX402 } from "./x402-orders.ts";

/**
 * How keys and owners pay for credit, and what only an operator can decide about payments. None of them is served where
 * payments are not configured.
 */
export const paymentEndpoints = () => [
  operation("POST /v1/me/saved", PAYMENTS.saved, saved),
  operation("GET /v1/payments/options", PAYMENTS.options, ({ who }, deps) => optionsOf(who, deps)),
  operation("POST /v1/credits", PAYMENTS.credit, order),
  operation("GET /v1/payments", PAYMENTS.list, async ({ who, query: { limit, before } }, { payments }) => {
    const of = { balanceId: who.balance.id, keyId: keyOf(who), state: null };
    return page(await payments!.store.list(of, limit + 1, before as PaymentId | null), limit, paymentView);
  }),
  operation("GET /v1/payments/:id", PAYMENTS.one, async ({ who, params: { id } }, { payments }) => {
    const payment = await payments!.store.find(id as PaymentId);
    const isTheirs =
      payment?.balanceId === who.balance.id && (who.kind === "owner" || payment.keyId === keyOf(who));
    if (!isTheirs) return noPayment(id);
    await payments!.x402?.answered(payment);
    return paymentView(payment);
  }),
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
      // One that the balance cannot hold stays held, and its reason says so.
      return decided.state === as || decided.state === "held"
        ? operatorsView(decided)
        : notIn("held", decided);
    },
  ),
];

const noPayment = (id: string): Refusal => invalidField("id", `There is no payment \`${repeated(id)}\`.`);

/** Keys see the payments that they ordered, also before a rotation. */
const keyOf = (who: Identity) => (who.kind === "key" ? who.key.rotationId : null);

async function saved(
  { who, fields }: OperationRequest<string, typeof PAYMENTS.saved>,
  { keyDeps, clock }: HttpDeps,
) {
  if (who.by !== "recovery")
    return refuse(
      "invalid_request",
      "Only the recovery secret, as the bearer token, shows that it is saved.",
    );
  const { id } = who.balance;
  const holder = await keyDeps.keyring.identify(fields.key, clock.now());
  if (holder?.balance.id !== id)
    return invalidField(
      "key",
      "`key` must be an API key of the balance that the recovery secret belongs to.",
    );
  const at = await keyDeps.store.secretsSaved(id, clock.now());
  keyDeps.keyring.forgetBalance(id);
  return { balance_id: id, secrets_saved_at: isoTime(at) };
}

/** Never an address: who sees one sends money there, and nobody would know whose it is. */
function optionsOf(who: Identity, deps: HttpDeps): PaymentOptions {
  const { amounts, x402 } = deps.payments!;
  const limits = {
    min_usd: usdFromNano(amounts.min),
    max_usd: usdFromNano(amounts.max),
    suggested_usd: usdFromNano(amounts.suggested),
  };
  const offered = x402?.offered() ?? [];
  const networks = offered.map(({ network }) => network.network);
  const assets = offered.map(({ token }) => token.name);
  const card = cardMethod(who, deps);
  return {
    methods: [
      ...(offered.length === 0 ? [] : [{ rail: "x402" as const, networks, assets, ...limits }]),
      ...(card === null ? [] : [{ ...card, ...limits }]),
    ],
    needs: needsSaving(who.balance) ? ["secrets_saved" as const] : [],
  };
}

async function order(
  { who, fields, exchange }: OperationRequest<string, typeof PAYMENTS.credit>,
  deps: HttpDeps,
) {
  const { balance } = who;
  if (balance.suspended !== null) return suspension(balance.suspended, deps.config.settings.contact);
  const amount = readUsd("amount_usd", fields.amount_usd);
  if (refused(amount)) return amount;
  const idempotencyKey = idempotencyKeyOf(exchange.request.headers);
  if (idempotencyKey !== null && (idempotencyKey === "" || idempotencyKey.length > MAX_KEY))
    return invalidField("Idempotency-Key", `\`Idempotency-Key\` must have 1 to ${MAX_KEY} characters.`);
  if (needsSaving(balance)) return refuse("invalid_request", SAVE_FIRST);
  const { x402, card } = deps.payments!;
  const { rail = x402 === null ? "card" : "x402" } = fields;
  if ((rail === "x402" ? x402 : card) === null)
    return invalidField("rail", "`rail` must be one that GET /v1/payments/options names.");
  const creditOrder: CreditOrder = { balance, keyId: keyOf(who), amount, idempotencyKey };
  if (rail === "card") return orderByCard(creditOrder, who, exchange.receipt, deps);
  const header = exchange.request.headers.get("payment-signature");
  const take = () => orderByX402(creditOrder, header, deps);
  const paid = await (header === null ? take() : againstForging(exchange, take));
  if (refused(paid)) return paid;
  const { payment, response } = paid;
  if (payment.state !== "credited") {
    const location = { location: `/v1/payments/${payment.id}` };
    return new JsonReply(202, { id: payment.id, state: payment.state, reason: payment.reason }, location);
  }
  const { total } = await deps.ledger.balance(balance.id);
  // A client that has left sends its request again.
  if (!exchange.signal.aborted) await deps.payments!.x402!.answered(payment);
  return new JsonReply(
    201,
    {
      id: payment.id,
      state: payment.state,
      amount_usd: usdFromNano(payment.amount),
      balance_usd: usdFromNano(total),
    },
    { "payment-response": response },
  );
}

const MAX_KEY = 255;

const paymentView = (payment: Payment): PaymentAnswer => ({
  id: payment.id,
  object: "payment",
  rail: payment.rail,
  state: payment.state,
  amount_usd: usdFromNano(payment.amount),
  credited_usd: usdFromNano(payment.credited),
  network: payment.rail === "x402" ? payment.external.split("/")[0]! : null,
  payer: payment.payer,
  transaction: payment.transaction,
  reason: payment.reason,
  created_at: isoTime(payment.createdAt),
  changed_at: isoTime(payment.changedAt),
});

/** The debit comes first: a payment that says it is refunded has nothing left to be spent. */
async function refund(payment: Payment, { ledger, payments, clock }: HttpDeps) {
  const { id, balanceId, credited, rail } = payment;
  if (payment.state === "refunded") return operatorsView(payment);
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
    at: clock.now(),
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
  return operatorsView(refunded);
}

/** What became of a decision about a card payment that should have been in that state. */
function answered(done: CardDecision, payment: Payment, state: "credited" | "held") {
  switch (done) {
    case "not refundable":
    case "not held":
      return notIn(state, payment);
    case "under way":
      return refuse(
        "internal_error",
        "A refund of this payment is under way; one that was cut off is taken up within 30 s. Repeat the request.",
        { retryAfterS: 5 },
      );
    case "no answer":
      return refuse(
        "internal_error",
        "It is decided, and the card processor has not answered yet; the log says why. A refund has taken the credit back, and the card has no money yet. Repeat the request.",
        { retryAfterS: 5 },
      );
    case "worth unknown":
      return refuse(
        "invalid_request",
        `${payment.reason} What that is worth in USD is not known, so it cannot become credit. Resolve it as \`refunded\`, which refunds the card; or keep it, and add what it is worth with POST /admin/credits.`,
      );
    default:
      return "available" in done ? tooLittle(payment.credited, done.available) : operatorsView(done);
  }
}

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
