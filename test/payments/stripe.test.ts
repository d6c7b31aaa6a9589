import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Stripe } from "stripe";
import type { Cents } from "../../src/payments/rails/stripe/checkout.ts";
import { StripeApi } from "../../src/payments/rails/stripe/stripe-api.ts";
import type { StripeConfig } from "../../src/payments/rails/stripe/stripe-config.ts";
import { readEvent } from "../../src/payments/rails/stripe/webhook.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import type { PaymentId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { FakeStripe, signedEvent } from "../fakes/stripe.ts";

const NOW = 1_790_000_000_000 as EpochMs;
const PAYMENT = "pay_7" as PaymentId;

describe("Stripe's API", () => {
  let stripe: FakeStripe;
  let api: StripeApi;
  beforeAll(() => {
    stripe = new FakeStripe();
    const fee = { percent: 2.9, fixed: 300_000_000 as NanoUsd };
    const config: StripeConfig = { secretKey: "sk_test_1", webhookSecrets: [], fee, apiBase: stripe.url };
    api = new StripeApi(config);
  });
  afterAll(() => stripe.close());

  const order = {
    payment: PAYMENT,
    amount: 1_000 as Cents,
    fee: 61 as Cents,
    returnUrl: "https://gateway.example/dashboard",
    expiresAt: NOW,
  };

  test("opens one page for a payment, however often it is asked and answers are lost", async () => {
    stripe.losesAnswers = true;
    await expect(api.open(order)).rejects.toThrow();
    stripe.losesAnswers = false;
    const opened = await api.open(order);
    expect(await api.open(order)).toEqual(opened);
    expect(stripe.opened).toHaveLength(1);
    expect(opened).toMatchObject({
      state: "open",
      total: 1_061,
      currency: "usd",
      refunded: 0,
      disputes: [],
    });
    expect(opened.url).toContain(opened.session);
  });

  test("tells what became of it: paid, refunded, disputed; inquiries are no disputes", async () => {
    const [session] = stripe.opened;
    stripe.pay(session!);
    const seen = () => api.checkout(session!.id);
    expect(await seen()).toMatchObject({ state: "paid", intent: session!.intent, payer: "visa …4242" });
    expect(await api.paymentOf(session!.intent)).toBe(PAYMENT);
    session!.charge!.refunded = 300;
    expect(await seen()).toMatchObject({ refunded: 300 });
    const statuses = ["warning_needs_response", "needs_response", "under_review", "lost", "won"];
    const outcomes: unknown[] = [];
    for (const status of statuses) {
      session!.charge!.disputes.splice(0, 1, { id: "dp_1", status });
      outcomes.push((await seen()).disputes[0]?.outcome);
    }
    expect(outcomes).toEqual([undefined, "open", "open", "lost", "won"]);
    session!.charge!.disputes.push({ id: "dp_2", status: "needs_response" });
    expect((await seen()).disputes.map(({ id }) => id)).toEqual(["dp_1", "dp_2"]);
    await api.refund(session!.intent, PAYMENT);
    expect(await seen()).toMatchObject({ refunded: 1_061 });
  });
});

describe("an event", () => {
  const SECRETS = ["whsec_new", "whsec_old"];
  const { webhooks } = new Stripe("none");
  const session = { id: "cs_1", object: "checkout.session", metadata: { payment_id: PAYMENT } };
  const dispute = { id: "dp_1", object: "dispute", metadata: {}, payment_intent: "pi_1" };
  const read = async (
    object: object,
    { secret = "whsec_new", ageS = 0, alter = (body: string) => body } = {},
  ) => {
    const { body, signature } = await signedEvent("any", object, { secret, at: NOW - ageS * 1_000 });
    return readEvent({ body: alter(body), signature }, SECRETS, webhooks, NOW);
  };

  test.each([
    ["names the payment that it concerns", session, { payment: PAYMENT }],
    ["of a dispute names the PaymentIntent", dispute, { intent: "pi_1" }],
    ["may be about something else on the operator's account", { object: "payout" }, "nothing of ours"],
    ["may be about another program's payment", { metadata: { payment_id: "4711" } }, "nothing of ours"],
  ])("%s", async (_, object, concern) => {
    expect(await read(object)).toEqual(concern as never);
  });

  test("is taken by each secret, for 300 seconds", async () => {
    expect(await read(session, { secret: "whsec_old" })).not.toBeNull();
    expect(await read(session, { ageS: 300 })).not.toBeNull();
    expect(await read(session, { ageS: -300 })).not.toBeNull();
  });

  test.each([
    ["301 seconds old", { ageS: 301 }],
    ["dated 301 seconds ahead", { ageS: -301 }],
    ["signed by somebody else", { secret: "whsec_other" }],
    ["altered", { alter: (body: string) => body.replace(PAYMENT, "pay_8") }],
  ])("that is %s is not believed", async (_, more) => {
    expect(await read(session, more)).toBeNull();
  });

  test("without a signature is not believed", async () => {
    for (const signature of ["", "t=1", "v1=00", "t=,v1="])
      expect(await readEvent({ body: "{}", signature }, SECRETS, webhooks, NOW)).toBeNull();
  });
});
