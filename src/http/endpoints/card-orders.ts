import { type CheckoutAnswer, PAYMENTS, type PaymentMethod } from "../../api/payments.ts";
import { dayCap, OPEN_PAGES, whyNot } from "../../payments/amounts.ts";
import { orderOf } from "../../payments/rails/stripe/card-order.ts";
import { nanoOf } from "../../payments/rails/stripe/checkout.ts";
import { isoTime } from "../../units/clock.ts";
import { invalidField, type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import type { ReceiptId } from "../../units/id.ts";
import { usdFromNano } from "../../units/usd.ts";
import { againstForging, type Identity, ownersOnly } from "../authentication.ts";
import { declaredLength } from "../body.ts";
import { readControlBytes } from "../control-body.ts";
import type { HttpDeps } from "../deps.ts";
import type { HttpExchange } from "../exchange.ts";
import { operation } from "../operation.ts";
import type { CreditOrder } from "./x402-orders.ts";

/**
 * An order that a card pays, on a page of Stripe's. For owners only: with a stolen card, the finder of a leaked key could
 * have its owner suspended.
 */
export async function orderByCard(
  { balance, amount, idempotencyKey }: CreditOrder,
  who: Identity,
  receipt: ReceiptId,
  deps: HttpDeps,
): Promise<CheckoutAnswer | Refusal> {
  if (who.kind === "key") return ownersOnly("pay by card");
  const { amounts, card } = deps.payments!;
  const why = whyNot(amount, amounts);
  if (why !== null) return invalidField("amount_usd", `\`amount_usd\` ${why}.`);
  const caps = [dayCap(amounts, deps.clock.now()), OPEN_PAGES];
  const ordered = await card!
    .order({ balanceId: balance.id, amount, idempotencyKey, caps })
    .catch((error: unknown) => {
      deps.onFault(error, receipt);
      return noAnswer();
    });
  if (refused(ordered)) return ordered;
  const { payment, checkout } = ordered;
  return {
    id: payment.id,
    state: payment.state,
    amount_usd: usdFromNano(payment.amount),
    charged_usd: usdFromNano(nanoOf(orderOf(payment).total)),
    checkout_url: checkout.url,
    expires_at: isoTime(checkout.expiresAt),
  };
}

const noAnswer = (): Refusal =>
  refuse(
    "internal_error",
    "The card processor did not answer, and nothing was charged. Repeat the request with the same `Idempotency-Key`.",
    { retryAfterS: 5 },
  );

/** Null where this credential cannot pay by card. */
export function cardMethod(
  { kind }: Identity,
  { payments }: Pick<HttpDeps, "payments">,
): Pick<PaymentMethod, "rail" | "fee"> | null {
  const card = payments?.card ?? null;
  if (card === null || kind !== "owner") return null;
  const { percent, fixed } = card.fee;
  return { rail: "card", fee: { percent, fixed_usd: usdFromNano(fixed) } };
}

/** Stripe's events. Any other answer than 200 has Stripe send one again, for three days. */
export const stripeEventEndpoints = () => [
  operation("POST /webhooks/stripe", PAYMENTS.stripe, async ({ exchange }) => {
    const length = declaredLength(exchange.request);
    if (refused(length)) return length;
    const isSmall = length !== null && length <= SMALL_EVENT_BYTES;
    return isSmall ? take(exchange) : againstForging(exchange, () => take(exchange));
  }),
];

async function take(exchange: HttpExchange) {
  const body = await readControlBytes(exchange, MAX_EVENT_BYTES);
  if (refused(body)) return body;
  const signature = exchange.request.headers.get("stripe-signature") ?? "";
  const event = await exchange.deps.payments!.card!.event({
    body: new TextDecoder().decode(body),
    signature,
  });
  return event === null
    ? refuse("invalid_request", "The event was not signed by Stripe for this gateway within 300 s.", {
        param: "Stripe-Signature",
      })
    : event;
}

const MAX_EVENT_BYTES = 262_144;
/**
 * What others sign costs as little as an unknown key, so it is not counted: else a sender that shares an address with Stripe,
 * behind a proxy that is not trusted, could keep its events out. They have some 4 KiB.
 */
const SMALL_EVENT_BYTES = 16_384;
