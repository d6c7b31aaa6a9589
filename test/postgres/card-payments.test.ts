import { expect, test } from "bun:test";
import { FakeStripe, signedEvent } from "../fakes/stripe.ts";
import { until } from "../fakes/until.ts";
import type { OpenGateway } from "../gateway/open.ts";
import { openQuick, save } from "../payments/paid-gateway.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("card payments at two gateways", (cluster) => {
  test("are credited once, and disputed once, whichever of them receives it, and both at once", async () => {
    const stripe = new FakeStripe();
    const config = `store: ${await cluster.database()}
payments: { stripe: { secret_key: sk_test_1, webhook_secret: whsec_1, api_base: "${stripe.url}" } }
`;
    const gateways = await Promise.all([1, 2].map(() => openQuick(config)));
    const [one, two] = gateways as [OpenGateway, OpenGateway];
    const owner = await one.key(0);
    await save(one, owner);
    const bearer = owner.recovery_secret;
    const notify = async (object: object) => {
      const { body, signature } = await signedEvent("any", object, { secret: "whsec_1", at: Date.now() });
      const event = { bytes: body, headers: { "stripe-signature": signature } };
      const deliveries = gateways.flatMap((at) =>
        [1, 2, 3].map(() => at.send("POST", "/webhooks/stripe", event)),
      );
      for (const { status } of await Promise.all(deliveries)) expect(status).toBe(200);
    };
    const state = async (id: string) => (await two.send("GET", `/v1/payments/${id}`, { bearer })).json.state;
    const balances = async () =>
      Promise.all(gateways.map(async (at) => (await at.send("GET", "/v1/me", { bearer })).json.balance_usd));

    for (let round = 1; round <= 5; round++) {
      const key = { "idempotency-key": `order ${round}` };
      const order = { bearer, json: { amount_usd: 10, rail: "card" }, headers: key };
      const answers = await Promise.all(gateways.map((at) => at.send("POST", "/v1/credits", order)));
      expect(answers.map(({ json }) => json.id)).toEqual(answers.map(() => answers[0]!.json.id));
      const { id } = answers[0]!.json;
      const session = stripe.opened.at(-1)!;
      stripe.pay(session);
      await notify({ id: session.id, metadata: { payment_id: id } });
      await until(async () => (await state(id)) === "credited");
      session.charge!.disputes.push({ id: `dp_${round}`, status: "needs_response" });
      await notify({ id: `dp_${round}`, payment_intent: session.intent });
      await until(async () => (await balances()).every((usd) => usd === (round - 1) * 10));
      session.charge!.disputes[0]!.status = "won";
      await notify({ id: `dp_${round}`, payment_intent: session.intent });
      await until(async () => (await balances()).every((usd) => usd === round * 10));
      await until(async () => (await one.send("GET", "/v1/me", { bearer })).json.suspended === null);
    }
    const { json: audit } = await one.admin("/admin/ledger/audit");
    expect([audit.ok, audit.credits_nano]).toEqual([true, "50000000000"]);
    for (const gateway of gateways) await gateway.close();
    await stripe.close();
  });
});
