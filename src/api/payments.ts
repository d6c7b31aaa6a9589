import { type Static, Type } from "@sinclair/typebox";
import { PAYMENT_STATES } from "../payments/payment.ts";
import { type About, endpointsWith } from "./about.ts";
import * as t from "./schema.ts";

const rail = t.oneOf(["x402", "card"]);
const state = t.oneOf(PAYMENT_STATES);

const members = {
  id: Type.String(),
  object: Type.Literal("payment"),
  rail,
  state,
  amount_usd: t.amountUsd,
  credited_usd: {
    ...t.amountUsd,
    description: "credited by it, less what was taken back because of it; USD",
  },
  network: t.orNone(t.string("of x402: CAIP-2")),
  payer: t.orNone(Type.String()),
  transaction: t.orNone(Type.String()),
  reason: t.orNone(t.string("why it is as it is")),
  created_at: t.time,
  changed_at: t.time,
};

export const PaymentAnswer = t.namedAnswer("Payment", members);
export type PaymentAnswer = Static<typeof PaymentAnswer>;

const OperatorsPayment = t.namedAnswer("OperatorsPayment", {
  ...members,
  balance_id: Type.String(),
  key_id: t.orNone(t.string("the first of the key's chain of rotations")),
  lost_usd: { ...t.amountUsd, description: "was to be taken back, and was spent; USD" },
  inline: t.boolean("a request for an answer paid it"),
});
export type OperatorsPayment = Static<typeof OperatorsPayment>;

const PaidAnswer = t.object({
  id: Type.String(),
  state,
  amount_usd: t.amountUsd,
  balance_usd: t.amountUsd,
});

/** A page of Stripe's on which a card is charged. */
const CheckoutAnswer = t.namedAnswer("Checkout", {
  id: Type.String(),
  state,
  amount_usd: t.amountUsd,
  charged_usd: { ...t.amountUsd, description: "what the card is charged, with the fee; USD" },
  checkout_url: t.orNone(t.string("where the card is entered; null once that is over")),
  expires_at: t.time,
});
export type CheckoutAnswer = Static<typeof CheckoutAnswer>;

const UnpaidAnswer = t.object({ id: Type.String(), state, reason: t.orNone(Type.String()) });

const SavedFields = t.object({ key: t.text(128, "an API key of the same balance, a text") });

const CreditOrder = t.object({
  amount_usd: t.usd,
  rail: Type.Optional(t.choice(["x402", "card"], "x402 or card")),
});

const ResolveFields = t.object({
  as: t.choice(
    ["credited", "refunded"],
    "credited: what arrived becomes credit; refunded: a card gets its money back, stablecoins were sent back by hand",
  ),
  note: Type.Optional(t.text(500, "a text")),
});

const PaymentMethod = t.object({
  rail,
  networks: Type.Optional(t.texts),
  assets: Type.Optional(t.texts),
  min_usd: t.amountUsd,
  max_usd: t.amountUsd,
  suggested_usd: t.amountUsd,
  fee: Type.Optional(t.object({ percent: Type.Number(), fixed_usd: t.amountUsd })),
});
export type PaymentMethod = Static<typeof PaymentMethod>;

const PaymentOptions = t.object({
  methods: t.several(PaymentMethod, { description: "those that this credential may use" }),
  needs: t.several(t.oneOf(["secrets_saved"], "what has to be done before anything can be paid")),
});

export type PaymentOptions = Static<typeof PaymentOptions>;

export const PAYMENTS = endpointsWith(
  { needs: "payments" },
  {
    saved: {
      summary: "Shows that both secrets of a balance are saved",
      details:
        "The recovery secret is the bearer token, and `key` an API key of the same balance. A balance without an account is lost with them, so nothing can be paid into it before. It may be repeated.",
      who: ["owner"],
      act: "show that the secrets are saved",
      body: SavedFields,
      answers: { 200: t.object({ balance_id: Type.String(), secrets_saved_at: t.time }) },
    },
    options: {
      summary: "Lists how credit can be paid for",
      who: ["key", "owner"],
      answers: { 200: PaymentOptions },
    },
    credit: {
      summary: "Orders credit",
      details:
        "By x402: without a payment it is refused with 402, and the header `payment-required` says what to sign; sent again with `payment-signature`, it is 201 once it is credited, and 202 where that takes longer. The same authorization again is the same payment, and so is another one under the same `Idempotency-Key`. The same order again, without a payment, is answered with the payment that is under way for it, or that was credited before its customer got the answer. By card, for owners: opens a page on which the card is charged; credit follows within seconds.",
      who: ["key", "owner"],
      anyOrigin: true,
      body: CreditOrder,
      answers: { 201: Type.Union([PaidAnswer, CheckoutAnswer]), 202: UnpaidAnswer },
    },
    list: {
      summary: "Lists payments, newest first",
      details: "An owner sees those of the balance, a key those that it ordered.",
      who: ["key", "owner"],
      query: t.pageQuery(),
      answers: { 200: t.pageOf(PaymentAnswer) },
    },
    one: {
      summary: "Shows a payment",
      who: ["key", "owner"],
      answers: { 200: PaymentAnswer },
    },
    adminList: {
      who: ["admin"],
      summary: "Lists payments of all balances, newest first",
      query: {
        ...t.pageQuery(),
        state: t.oneOf(PAYMENT_STATES, "held: these wait for the operator"),
        balance: t.string("a balance's id"),
      },
      answers: { 200: t.pageOf(OperatorsPayment) },
    },
    stripe: {
      summary: "Takes Stripe's events",
      details:
        "Signed by Stripe, of at most 256 KiB and 300 s old. An error has Stripe send the event again.",
      needs: "payments.stripe",
      who: [],
      answers: { 200: t.object({ received: Type.Literal(true) }) },
    },
    refund: {
      who: ["admin"],
      summary: "Takes the credit of a payment back, to refund it",
      details:
        "The credit is taken back first, and only if all of it is available. A card then gets back all that it was charged, with the fee. What was paid by x402, the operator sends to the payer by hand: the gateway has no key to it. Repeating it does nothing more.",
      answers: { 200: OperatorsPayment },
    },
    resolve: {
      who: ["admin"],
      summary: "Decides about a payment that is held",
      details:
        "As `credited`, its `amount_usd` is credited: what arrived, where that is not what was ordered. For a card payment in another currency than USD, it is what was ordered.",
      body: ResolveFields,
      answers: { 200: OperatorsPayment },
    },
  },
) satisfies Record<string, About>;
