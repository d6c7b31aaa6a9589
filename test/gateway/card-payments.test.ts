import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { closeAll } from "../fakes/close-all.ts";
import { type FakeSession, FakeStripe, signedEvent } from "../fakes/stripe.ts";
import { until } from "../fakes/until.ts";
import { openQuick } from "../payments/paid-gateway.ts";
import { type Made, open, openIn } from "./open.ts";

const SECRET = "whsec_test";

const config = (stripe: FakeStripe) => `base_url: https://gateway.example
setup: { accountless_keys_per_address_per_hour: 1000 }
payments:
  amounts: { max_usd: 50, max_usd_per_day: 60 }
  stripe: { secret_key: sk_test_1, webhook_secret: [whsec_next, ${SECRET}], api_base: "${stripe.url}" }
`;

const stripe = new FakeStripe();
let gateway = await openQuick(config(stripe));
afterAll(() => closeAll(gateway, stripe));
afterEach(() => {
  stripe.isDown = false;
});

/** An owner who has shown that both secrets were saved. */
async function owner(): Promise<Made> {
  const made = await gateway.key(0);
  const { status } = await gateway.send("POST", "/v1/me/saved", {
    bearer: made.recovery_secret,
    json: { key: made.key },
  });
  expect(status).toBe(200);
  return made;
}

const pay = (who: Made, json: object = {}, headers: Record<string, string> = {}) =>
  gateway.send("POST", "/v1/credits", {
    bearer: who.recovery_secret,
    json: { rail: "card", amount_usd: 10, ...json },
    headers,
  });

const sessionOf = (payment: string): FakeSession => stripe.opened.find((one) => one.payment === payment)!;

async function paid(who: Made, amount_usd = 10): Promise<{ id: string; session: FakeSession }> {
  const { json } = await pay(who, { amount_usd });
  const session = sessionOf(json.id);
  stripe.pay(session);
  await event("checkout.session.completed", session.id, { metadata: { payment_id: json.id } });
  await stateOf(who, json.id, "credited");
  return { id: json.id, session };
}

async function event(type: string, id: string, more: object = {}): Promise<number> {
  const { body, signature } = await signedEvent(type, { id, ...more }, { secret: SECRET, at: Date.now() });
  return deliver(body, signature);
}

const deliver = async (body: string, signature: string): Promise<number> =>
  (
    await gateway.send("POST", "/webhooks/stripe", {
      bytes: body,
      headers: { "stripe-signature": signature },
    })
  ).status;

test("a request whose credit is short learns where its owner pays, who does not need the operator for that", async () => {
  const { key } = await owner();
  const { status, json } = await gateway.chat(key, { model: "sim/echo" });
  expect(status).toBe(402);
  expect(json.error.message).toContain("is paid for at https://gateway.example/dashboard, or added by");
});

const payment = async (who: Made, id: string) =>
  (await gateway.send("GET", `/v1/payments/${id}`, { bearer: who.recovery_secret })).json;

const stateOf = (who: Made, id: string, state: string) =>
  until(async () => (await payment(who, id)).state === state);

const balance = async ({ recovery_secret }: Made) =>
  (await gateway.send("GET", "/v1/me", { bearer: recovery_secret })).json;

describe("an owner pays by card", () => {
  test("on Stripe's page, and has the credit once Stripe says that it is paid", async () => {
    const who = await owner();
    const { status, json } = await pay(who);
    expect(status).toBe(201);
    expect(json).toMatchObject({ state: "created", amount_usd: 10, charged_usd: 10.61 });
    expect(json.checkout_url).toStartWith("https://checkout.stripe.example/");
    const session = sessionOf(json.id);
    expect(session.total).toBe(1_061);
    expect((await balance(who)).balance_usd).toBe(0);
    stripe.pay(session);
    const news = { metadata: { payment_id: json.id } };
    expect(await event("checkout.session.completed", session.id, news)).toBe(200);
    await stateOf(who, json.id, "credited");
    expect((await balance(who)).balance_usd).toBe(10);
    expect(await payment(who, json.id)).toMatchObject({ payer: "visa …4242", transaction: session.intent });
    // Again, and in another order.
    for (const type of ["payment_intent.succeeded", "checkout.session.completed", "payment_intent.created"])
      expect(await event(type, session.id, news)).toBe(200);
    expect((await balance(who)).balance_usd).toBe(10);
    expect((await gateway.admin("/admin/ledger/audit")).json.ok).toBe(true);
  });

  test("with the same idempotency key once; with another amount it is refused", async () => {
    const who = await owner();
    const key = { "idempotency-key": "one" };
    const [first, again] = [await pay(who, {}, key), await pay(who, {}, key)];
    expect(again.json).toEqual(first.json);
    const other = await pay(who, { amount_usd: 11 }, key);
    expect([other.status, other.json.error.param]).toEqual([400, "Idempotency-Key"]);
  });

  test("and gets the same page for the same key once Stripe is back", async () => {
    const who = await owner();
    stripe.isDown = true;
    const key = { "idempotency-key": "two" };
    const down = await pay(who, {}, key);
    expect([down.status, down.headers.get("retry-after")]).toEqual([500, "5"]);
    stripe.isDown = false;
    const up = await pay(who, {}, key);
    expect(up.status).toBe(201);
    const listed = await gateway.send("GET", "/v1/payments", { bearer: who.recovery_secret });
    expect(listed.json.data.map(({ id }: { id: string }) => id)).toEqual([up.json.id]);
  });

  const REFUSED: readonly [string, object, number, string][] = [
    ["less than the least", { amount_usd: 0.5 }, 400, "amount_usd"],
    ["more than the most", { amount_usd: 50.01 }, 400, "amount_usd"],
    ["parts of a cent", { amount_usd: 5.001 }, 400, "amount_usd"],
    ["by a rail that is not there", { rail: "cash" }, 400, "rail"],
    ["by x402, which is not configured", { rail: "x402" }, 400, "rail"],
  ];
  test.each(REFUSED)("but not %s", async (_, json, status, param) => {
    const refused = await pay(await owner(), { amount_usd: 10, ...json });
    expect([refused.status, refused.json.error.param]).toEqual([status, param]);
  });

  test("but not more than the day's limit", async () => {
    const who = await owner();
    await pay(who, { amount_usd: 50 });
    const { status, json } = await pay(who, { amount_usd: 11 });
    expect([status, json.error.code]).toEqual([429, "budget_exhausted"]);
    expect(json.error.message).toContain("$60.00");
  });

  test("but not with secrets that nobody has shown to be saved, nor with an API key", async () => {
    const made = await gateway.key(0);
    const unsaved = await pay(made);
    expect([unsaved.status, unsaved.json.error.message]).toEqual([
      400,
      expect.stringContaining("/v1/me/saved"),
    ]);
    expect(unsaved.text).not.toContain("checkout");
    const { json } = await gateway.send("GET", "/v1/payments/options", { bearer: made.recovery_secret });
    expect(json.needs).toEqual(["secrets_saved"]);
    const who = await owner();
    const byKey = await gateway.send("POST", "/v1/credits", { bearer: who.key, json: { amount_usd: 10 } });
    expect(byKey.status).toBe(400);
  });
});

describe("an event", () => {
  test.each([
    ["301 s old", { at: Date.now() - 301_000 }, 400],
    ["signed by somebody else", { secret: "whsec_other" }, 400],
    ["of something else on the account", {}, 200],
    ["by the secret to come", { secret: "whsec_next" }, 200],
  ])("%s", async (_, more, status) => {
    const signing = { secret: SECRET, at: Date.now(), ...more };
    const { body, signature } = await signedEvent("payout.paid", { id: "po_1" }, signing);
    expect(await deliver(body, signature)).toBe(status);
    expect(await deliver(body.replace("po_1", "po_2"), signature)).toBe(400);
  });

  test("of more than 256 KiB is refused, and one without a signature", async () => {
    expect(await deliver("x".repeat(262_145), "t=1,v1=00")).toBe(413);
    expect(await deliver("{}", "")).toBe(400);
  });

  test("that Stripe has to be asked about is asked for again while it is down", async () => {
    const who = await owner();
    const { session, id } = await paid(who);
    session.charge!.disputes.push({ id: "dp_9", status: "needs_response" });
    stripe.isDown = true;
    const news = { payment_intent: session.intent };
    expect(await event("charge.dispute.created", "dp_9", news)).toBe(500);
    stripe.isDown = false;
    expect(await event("charge.dispute.created", "dp_9", news)).toBe(200);
    await stateOf(who, id, "disputed");
  });
});

describe("a dispute", () => {
  const disputed = async (of: { id: string; session: FakeSession }, status: string) => {
    of.session.charge!.disputes.splice(0, 1, { id: `dp_${of.id}`, status });
    await event("charge.dispute.updated", `dp_${of.id}`, { payment_intent: of.session.intent });
  };

  test("takes back what is left and suspends; won, it is credited again and lifts that suspension alone", async () => {
    const who = await owner();
    const one = await paid(who);
    await gateway.admin(`/admin/accounts/${who.balance_id}/suspend`, { reason: "acceptable_use" });
    await disputed(one, "needs_response");
    await stateOf(who, one.id, "disputed");
    await until(async () => (await balance(who)).balance_usd === 0);
    expect((await balance(who)).suspended).toBe("chargeback");
    await disputed(one, "won");
    await stateOf(who, one.id, "credited");
    await until(async () => (await balance(who)).suspended === "acceptable_use");
    expect((await balance(who)).balance_usd).toBe(10);
    expect((await gateway.admin("/admin/ledger/audit")).json.ok).toBe(true);
  });

  test("that is lost stays so, and its owner is refused", async () => {
    const who = await owner();
    const one = await paid(who);
    await disputed(one, "lost");
    await stateOf(who, one.id, "charged_back");
    expect((await gateway.chat(who.key, { model: "sim/echo" })).json.error.code).toBe("account_suspended");
    expect((await pay(who)).json.error.code).toBe("account_suspended");
    const listed = await gateway.admin("/admin/payments?state=charged_back");
    expect(listed.json.data).toMatchObject([{ id: one.id, balance_id: who.balance_id, lost_usd: 0 }]);
  });
});

/** A payment that is held, because something else was paid than was asked for. */
async function held(
  who: Made,
  cents: number,
  currency = "usd",
): Promise<{ id: string; session: FakeSession }> {
  const { json } = await pay(who);
  const session = sessionOf(json.id);
  stripe.pay(session, cents);
  session.currency = currency;
  await event("checkout.session.completed", session.id, { metadata: { payment_id: json.id } });
  await stateOf(who, json.id, "held");
  return { id: json.id, session };
}
const resolve = (id: string, as: string) => gateway.admin(`/admin/payments/${id}/resolve`, { as });

test("a payment that is disputed while it is held is decided about once the dispute is won", async () => {
  const who = await owner();
  const { id, session } = await held(who, 900);
  const disputed = async (status: string) => {
    session.charge!.disputes.splice(0, 1, { id: "dp_1", status });
    await event("charge.dispute.updated", "dp_1", { payment_intent: session.intent });
  };
  await disputed("lost");
  await stateOf(who, id, "charged_back");
  await until(async () => (await balance(who)).suspended === "chargeback");
  expect((await resolve(id, "credited")).status).toBe(400);
  await disputed("won");
  await stateOf(who, id, "held");
  await until(async () => (await balance(who)).suspended === null);
  expect((await balance(who)).balance_usd).toBe(0);
  expect((await resolve(id, "credited")).json.state).toBe("credited");
  expect((await balance(who)).balance_usd).toBe(8.39);
});

describe("the operator decides about what is held:", () => {
  test("what arrived becomes credit, without the fee", async () => {
    const who = await owner();
    const { id } = await held(who, 900);
    expect((await resolve(id, "credited")).json).toMatchObject({ state: "credited", credited_usd: 8.39 });
    expect((await balance(who)).balance_usd).toBe(8.39);
    expect((await gateway.admin("/admin/ledger/audit")).json.ok).toBe(true);
    const logged = async (action: string) =>
      (await gateway.admin(`/admin/changes?action=${action}`)).json.data.filter(
        ({ subject }: { subject: string }) => subject === id,
      );
    expect(await logged("payment.changed")).toMatchObject([
      { before: { state: "held" }, after: { state: "credited" } },
    ]);
    expect(await logged("payment.created")).toMatchObject([{ after: { state: "created" } }]);
  });

  test("what was refunded in part meanwhile becomes credit without that part", async () => {
    const who = await owner();
    const { id, session } = await held(who, 900);
    session.charge!.refunded = 300;
    expect((await resolve(id, "credited")).json).toMatchObject({ state: "credited", credited_usd: 5.39 });
    expect((await balance(who)).balance_usd).toBe(5.39);
  });

  test("what came in another currency becomes no credit, and the refusal says what can be done", async () => {
    const who = await owner();
    const { id, session } = await held(who, 1_061, "eur");
    expect(await payment(who, id)).toMatchObject({ amount_usd: 0, credited_usd: 0 });
    const refused = await resolve(id, "credited");
    expect([refused.status, refused.json.error.message]).toEqual([
      400,
      expect.stringContaining("10.61 EUR was paid"),
    ]);
    expect(refused.json.error.message).toContain("`refunded`");
    expect([(await balance(who)).balance_usd, (await payment(who, id)).state]).toEqual([0, "held"]);
    expect((await resolve(id, "refunded")).json.state).toBe("refunded");
    expect(session.charge!.refunded).toBe(1_061);
  });

  test.each(["resolve", "refund"])(
    "the card gets its money back, by %s, once Stripe answers",
    async (how) => {
      const who = await owner();
      const { id, session } = await held(who, 900);
      const again = () =>
        gateway.admin(`/admin/payments/${id}/${how}`, how === "resolve" ? { as: "refunded" } : {});
      stripe.isDown = true;
      expect((await again()).status).toBe(500);
      expect((await payment(who, id)).state).toBe("held");
      stripe.isDown = false;
      expect((await again()).json.state).toBe("refunded");
      expect([session.charge!.refunded, (await balance(who)).balance_usd]).toEqual([900, 0]);
      expect((await gateway.admin("/admin/ledger/audit")).json.ok).toBe(true);
    },
  );
});

describe("the operator refunds", () => {
  test("what is not spent, and the card gets it back", async () => {
    const who = await owner();
    const { id, session } = await paid(who);
    const done = await gateway.admin(`/admin/payments/${id}/refund`, {});
    expect([done.status, done.json.state]).toEqual([200, "refunded"]);
    expect(session.charge!.refunded).toBe(1_061);
    expect((await balance(who)).balance_usd).toBe(0);
    expect((await gateway.admin(`/admin/payments/${id}/refund`, {})).json.state).toBe("refunded");
  });

  test("once the credit is taken back, as soon as Stripe answers", async () => {
    const who = await owner();
    const { id, session } = await paid(who);
    stripe.isDown = true;
    const down = await gateway.admin(`/admin/payments/${id}/refund`, {});
    expect([down.status, (await balance(who)).balance_usd]).toEqual([500, 0]);
    stripe.isDown = false;
    expect((await gateway.admin(`/admin/payments/${id}/refund`, {})).json.state).toBe("refunded");
    expect(session.charge!.refunded).toBe(1_061);
    expect((await gateway.admin("/admin/ledger/audit")).json.ok).toBe(true);
  });

  for (const [what, meanwhile, was] of [
    [
      "disputed",
      ({ charge }: FakeSession) => charge!.disputes.push({ id: "dp_1", status: "lost" }),
      "charged_back",
    ],
    [
      "refunded in part at Stripe",
      ({ charge }: FakeSession) => Object.assign(charge!, { refunded: 300 }),
      "refunded",
    ],
  ] as const) {
    test(`what is ${what} meanwhile: its credit is taken back once`, async () => {
      const who = await owner();
      const [{ id, session }] = [await paid(who), await paid(who, 20)];
      stripe.isDown = true;
      expect((await gateway.admin(`/admin/payments/${id}/refund`, {})).status).toBe(500);
      stripe.isDown = false;
      meanwhile(session);
      await event("charge.updated", session.charge!.id, { payment_intent: session.intent });
      await stateOf(who, id, was);
      await until(async () => (await payment(who, id)).credited_usd === 0);
      expect((await balance(who)).balance_usd).toBe(20);
      expect((await gateway.admin("/admin/ledger/audit")).json.ok).toBe(true);
    });
  }

  test("nothing of what is spent", async () => {
    const who = await owner();
    const { id, session } = await paid(who);
    await gateway.admin("/admin/debits", {
      balance_id: who.balance_id,
      amount_usd: 1,
      idempotency_key: `spent ${id}`,
    });
    const done = await gateway.admin(`/admin/payments/${id}/refund`, {});
    expect([done.status, done.json.error.message]).toEqual([
      400,
      expect.stringContaining("$9.00 is available"),
    ]);
    expect(session.charge!.refunded).toBe(0);
  });
});

test("a payment whose event was lost with the gateway is credited after the start", async () => {
  const first = await open(config(stripe));
  const before = gateway;
  gateway = first;
  const who = await owner();
  const { json } = await pay(who);
  stripe.isDown = true;
  stripe.pay(sessionOf(json.id));
  expect(
    await event("checkout.session.completed", sessionOf(json.id).id, { metadata: { payment_id: json.id } }),
  ).toBe(200);
  await first.gateway.stop();
  stripe.isDown = false;
  gateway = await openIn(first.folder);
  await stateOf(who, json.id, "credited");
  expect((await balance(who)).balance_usd).toBe(10);
  await gateway.close();
  gateway = before;
});

test("a dispute of which no event came is noticed all the same", async () => {
  const first = await open(config(stripe));
  const before = gateway;
  gateway = first;
  const who = await owner();
  const { id, session } = await paid(who);
  session.charge!.disputes.push({ id: "dp_1", status: "needs_response" });
  const object = { id: "dp_1", payment_intent: session.intent };
  stripe.events.push({ type: "payout.paid", object: {} }, { type: "charge.dispute.created", object });
  await first.gateway.stop();
  gateway = await openIn(first.folder);
  await stateOf(who, id, "disputed");
  await until(async () => (await balance(who)).balance_usd === 0);
  await gateway.close();
  gateway = before;
});

test("without the block, nothing new answers", async () => {
  const plain = await open("");
  const { key } = await plain.key(0);
  for (const [method, path] of [
    ["POST", "/v1/credits"],
    ["GET", "/v1/payments"],
    ["GET", "/v1/payments/options"],
    ["POST", "/webhooks/stripe"],
    ["GET", "/admin/payments"],
  ] as const) {
    const { status, json } = await plain.send(method, path, { bearer: key });
    expect([path, status]).toEqual([path, 400]);
    expect(json.error.message).toMatch(/is not served|does not take POST/);
  }
  await plain.close();
});
