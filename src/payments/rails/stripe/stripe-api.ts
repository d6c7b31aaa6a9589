import type { Stripe } from "stripe";
import { type EpochMs, epochMs } from "../../../units/clock.ts";
import type { PaymentId } from "../../../units/id.ts";
import { OutsideParty } from "../../../units/outside-party.ts";
import type { Cents, Checkout, CheckoutDispute } from "./checkout.ts";
import type { StripeConfig } from "./stripe-config.ts";
import { type Concern, concernOf, PAYMENT, paymentIn, readEvent, type SentEvent } from "./webhook.ts";

/** What is asked of Stripe. Everything that is made names its payment, and is made once however often it is asked for. */
export class StripeApi {
  private client: Promise<Stripe> | null = null;

  constructor(private readonly config: StripeConfig) {}

  /** Opens a page on which a card is charged. */
  async open({ payment, amount, fee, returnUrl, expiresAt }: CheckoutOrder): Promise<Checkout> {
    const { checkout } = await this.stripe();
    const metadata = { [PAYMENT]: payment };
    const session = await checkout.sessions.create(
      {
        mode: "payment",
        // Others are paid days later, and may still fail.
        allowed_payment_method_types: ["card"],
        client_reference_id: payment,
        metadata,
        payment_intent_data: { metadata },
        line_items: [line("Prepaid credit", amount), ...(fee === 0 ? [] : [line("Processing fee", fee)])],
        expires_at: Math.floor(expiresAt / 1_000),
        success_url: returnUrl,
        cancel_url: returnUrl,
      },
      { idempotencyKey: `checkout ${payment}` },
    );
    return checkoutOf(session, []);
  }

  /** As it is now, with refunds and disputes. */
  async checkout(session: string): Promise<Checkout> {
    const { checkout, disputes } = await this.stripe();
    const found = await checkout.sessions.retrieve(session, { expand: ["payment_intent.latest_charge"] });
    const charge = chargeOf(found);
    if (charge?.disputed !== true) return checkoutOf(found, []);
    const { data } = await disputes.list({ charge: charge.id, limit: MAX_DISPUTES });
    return checkoutOf(found, data);
  }

  /** All of it, once for each name. */
  async refund(intent: string, name: string): Promise<void> {
    const { refunds } = await this.stripe();
    await refunds.create({ payment_intent: intent }, { idempotencyKey: `refund ${name}` });
  }

  /** Which payment a PaymentIntent is for; null where it is for something else. */
  async paymentOf(intent: string): Promise<PaymentId | null> {
    const { paymentIntents } = await this.stripe();
    return paymentIn((await paymentIntents.retrieve(intent)).metadata);
  }

  /** Whom an event concerns; null where it is not Stripe's. */
  async event(sent: SentEvent, now: EpochMs): Promise<Concern | null> {
    if (!sent.signature.includes("v1=")) return null;
    const { webhooks } = await this.stripe();
    return readEvent(sent, this.config.webhookSecrets, webhooks, now);
  }

  /** Whom the latest refunds and disputes since then concern. */
  async takenBack(since: EpochMs): Promise<Concern[]> {
    const { events } = await this.stripe();
    const created = { gte: Math.floor(since / 1_000) };
    const found = events.list({ types: [...TAKE_BACK], created, limit: PAGE });
    return (await found.autoPagingToArray({ limit: MAX_EVENTS })).map(concernOf);
  }

  /** The package is loaded where cards are taken, and nowhere else: 95 ms and 23 MB of memory. */
  private stripe(): Promise<Stripe> {
    this.client ??= connect(this.config);
    return this.client;
  }
}

/** Its errors repeat what the key ends in, and are logged. */
export function openStripe(config: StripeConfig): StripeApi {
  const { secretKey, webhookSecrets, apiBase } = config;
  const party = new OutsideParty({
    called: "stripe",
    secrets: [secretKey, ...webhookSecrets],
    addresses: apiBase === null ? [] : [apiBase],
  });
  return party.guarded(new StripeApi(config));
}

export interface CheckoutOrder {
  readonly payment: PaymentId;
  readonly amount: Cents;
  readonly fee: Cents;
  readonly returnUrl: string;
  readonly expiresAt: number;
}

async function connect({ secretKey, apiBase }: StripeConfig): Promise<Stripe> {
  const { Stripe } = await import("stripe");
  const base = apiBase === null ? null : new URL(apiBase);
  return new Stripe(secretKey, {
    telemetry: false,
    timeout: ANSWER_MS,
    maxNetworkRetries: 1,
    httpClient: Stripe.createFetchHttpClient(),
    ...(base === null
      ? {}
      : {
          host: base.hostname,
          port: base.port === "" ? (base.protocol === "https:" ? 443 : 80) : base.port,
          protocol: base.protocol === "https:" ? "https" : "http",
        }),
  });
}

const ANSWER_MS = 10_000;

const line = (name: string, cents: Cents) => ({
  quantity: 1,
  price_data: { currency: "usd", unit_amount: cents, product_data: { name } },
});

function checkoutOf(session: Stripe.Checkout.Session, disputes: readonly Stripe.Dispute[]): Checkout {
  const { id, url, expires_at, amount_total, currency, payment_intent } = session;
  const charge = chargeOf(session);
  const card = charge?.payment_method_details?.card;
  return {
    session: id,
    url,
    expiresAt: epochMs(expires_at * 1_000),
    state: stateOf(session),
    total: amount_total as Cents | null,
    currency,
    intent: typeof payment_intent === "object" ? (payment_intent?.id ?? null) : payment_intent,
    payer: card == null ? null : `${card.brand ?? "card"} …${card.last4 ?? ""}`,
    refunded: (charge?.amount_refunded ?? 0) as Cents,
    disputes: disputes.toReversed().flatMap(({ id, status, amount }) => {
      const outcome = OUTCOMES[status];
      return outcome === undefined ? [] : [{ id, outcome, amount: amount as Cents }];
    }),
  };
}

function stateOf({ status, payment_status }: Stripe.Checkout.Session): Checkout["state"] {
  if (status === "expired") return "expired";
  if (status !== "complete") return "open";
  return payment_status === "paid" ? "paid" : "unpaid";
}

function chargeOf({ payment_intent }: Stripe.Checkout.Session): Stripe.Charge | null {
  const charge = typeof payment_intent === "object" ? payment_intent?.latest_charge : null;
  return typeof charge === "object" ? (charge ?? null) : null;
}

/** Inquiries (`warning_…`) and what was prevented take no money. An appeal is about one that was lost. */
const OUTCOMES: Readonly<Record<string, CheckoutDispute["outcome"]>> = {
  needs_response: "open",
  under_review: "open",
  lost: "lost",
  appeal_needs_response: "lost",
  appeal_under_review: "lost",
  won: "won",
};

const MAX_DISPUTES = 10;
/** What becomes of a payment whose page nobody looks at any more. */
const TAKE_BACK = [
  "charge.refunded",
  "refund.failed",
  "charge.dispute.created",
  "charge.dispute.updated",
  "charge.dispute.closed",
];
const PAGE = 100;
const MAX_EVENTS = 1_000;
