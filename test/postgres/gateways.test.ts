import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { json, sse, status } from "../fakes/behaviours.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { oneHost } from "../fakes/one-host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { type OpenGateway, open } from "../gateway/open.ts";
import { rounds } from "../rounds.ts";
import { describeOnPostgres } from "./fixture.ts";

/**
 * Three gateways on one PostgreSQL: the promises of one, kept by all of them together. Each request holds
 * exactly $0.001.
 */
describeOnPostgres("three gateways on one PostgreSQL", (cluster) => {
  let host: FakeHost;
  let gateways: OpenGateway[];
  let gates: { held: Gate<void>; arrivals: number };

  beforeAll(async () => {
    const { whole, events } = chatText(["ok"], { input: 10, output: 1 });
    gates = { held: gate(), arrivals: 0 };
    host = await startFakeHost((request) => async (wire, seen) => {
      gates.arrivals += 1;
      if (request.text().includes("in vain")) return status(500)(wire, seen);
      if (!request.text().includes("at once")) await gates.held.passed;
      await (request.json().stream === true ? sse(events) : json(whole))(wire, seen);
    });
    const store = await cluster.database();
    gateways = await Promise.all([1, 2, 3].map(() => open(config(host.url, store))));
  });
  afterAll(async () => {
    gates.held.open();
    for (const gateway of gateways ?? []) await gateway.close();
    await host.close();
  });

  const send = (at: number, key: string) =>
    gateways[at]!.chat(key, { messages: [{ role: "user", content: "at once" }] });

  /** Sends so many over all of them at once; nothing is answered until every one is admitted or refused. */
  async function storm(keys: readonly string[], requests = MANY): Promise<Record<number, number>> {
    gates = { held: gate(), arrivals: 0 };
    let refused = 0;
    const statuses: Record<number, number> = {};
    const replies = Array.from({ length: requests }, async (_, index) => {
      const { status } = await gateways[index % 3]!.chat(keys[index % keys.length]!);
      if (status !== 200) refused += 1;
      statuses[status] = (statuses[status] ?? 0) + 1;
    });
    await until(() => refused + gates.arrivals >= requests);
    gates.held.open();
    await Promise.all(replies);
    return statuses;
  }

  test("a refusal tells what is left in all, granted to any node, and what open requests hold elsewhere", async () => {
    const { key, balance_id } = await gateways[0]!.key(0.0015);
    gates = { held: gate(), arrivals: 0 };
    expect((await send(0, key)).status).toBe(200);
    const refused = async (max_tokens: number) => {
      const { status, headers, json } = await gateways[1]!.chat(key, { max_tokens });
      expect(status).toBe(402);
      return { available: headers.get("x-gateway-balance-usd"), message: json.error.message as string };
    };
    const open = gateways[0]!.chat(key);
    await until(() => gates.arrivals >= 2);
    // $0.00001 is spent and $0.001 held, of $0.0015.
    const refusals = await refused(100);
    expect(refusals.available).toBe("0.00049");
    // What was spent counts as held until it is shipped.
    expect(refusals.message).toMatch(/balance of \$0\.00049, with \$0\.001(01)? more held by open requests,/);
    expect(refusals.message).toContain("set max_tokens to at most 49");
    gates.held.open();
    expect((await open).status).toBe(200);
    expect((await send(1, key)).status).toBe(200);
    await gateways[2]!.credit(balance_id, 0.00001);
    while ((await send(2, key)).status === 200);
    // While the others' grants are on their way back, a refusal tells what is known.
    await until(async () => Number((await refused(100)).available) > 0.0009);
    expect(Number((await refused(100)).available)).toBeLessThan(0.001);
    // Once all of it was shipped.
    await until(async () => !(await refused(100)).message.includes("held by open requests"));
  }, 600_000);

  async function expectBooksInOrder(): Promise<void> {
    for (const gateway of gateways) {
      expect((await gateway.admin("/admin/ledger/audit")).json).toMatchObject({ ok: true, drift_nano: "0" });
    }
  }

  test("a key made at one works at the others, and its credit is one credit", async () => {
    const key = await gateways[0]!.key(1);
    for (const at of [0, 1, 2]) expect((await send(at, key.key)).status).toBe(200);
    const me = await gateways[1]!.send("GET", "/v1/me", { bearer: key.key });
    // Others ship what they spent within some milliseconds.
    expect(me.json.balance_usd).toBeLessThan(1);
    await expectBooksInOrder();
  });

  test("an audit while requests end finds nothing that is not there", async () => {
    const keys = await Promise.all(gateways.map((gateway) => gateway.key(1)));
    let running = true;
    const clients = keys.map(async ({ key }, at) => {
      while (running) expect((await send(at, key)).status).toBe(200);
    });
    for (let audit = 0; audit < AUDITS; audit++) await expectBooksInOrder();
    running = false;
    await Promise.all(clients);
    await expectBooksInOrder();
  });

  test("a balance is credited with at most $8,000,000 in all, which is counted exactly", async () => {
    const { balance_id, key } = await gateways[0]!.key(8_000_000);
    const credit = (amount_usd: number) =>
      gateways[0]!.admin("/admin/credits", { balance_id, amount_usd, idempotency_key: "much" });
    const refused = await credit(0.000000001);
    expect(refused.status).toBe(400);
    expect(refused.json.error).toMatchObject({ code: "invalid_request", param: "amount_usd" });
    expect((await credit(0.000000001)).status).toBe(400);
    expect((await gateways[0]!.send("GET", "/v1/me", { bearer: key })).json.balance_usd).toBe(8_000_000);
    await expectBooksInOrder();
  });

  test("a balance that covers ten admits ten, wherever they are sent", async () => {
    const key = await gateways[0]!.key(0.01);
    expect(await storm([key.key])).toEqual({ 200: 10, 402: MANY - 10 });
    await expectBooksInOrder();
  });

  for (const limit of ["daily_limit_usd", "monthly_limit_usd"]) {
    test(`a ${limit} that covers ten admits ten`, async () => {
      const key = await gateways[1]!.key(1, { [limit]: 0.01 });
      expect(await storm([key.key])).toEqual({ 200: 10, 429: MANY - 10 });
    });
  }

  test("rpm that covers ten admits ten", async () => {
    const key = await gateways[2]!.key(1, { rpm_limit: 10 });
    expect(await storm([key.key])).toEqual({ 200: 10, 429: MANY - 10 });
  });

  test("a budget that covers ten admits ten over all keys that draw from it", async () => {
    const first = await gateways[0]!.key(1);
    const bearer = first.recovery_secret;
    await gateways[0]!.send("POST", "/v1/budgets", {
      bearer,
      json: { name: "team", cap_usd: 0.01, window: "day" },
    });
    const keys = await Promise.all(
      [0, 1, 2, 3, 4].map(async (index) => {
        const made = await gateways[index % 3]!.send("POST", "/v1/keys", {
          bearer,
          json: { budget: "team" },
        });
        return made.json.key as string;
      }),
    );
    expect(await storm(keys)).toEqual({ 200: 10, 429: MANY - 10 });
    await expectBooksInOrder();
  });

  const heldElsewhere: [what: string, code: number, made: () => Promise<{ key: string }>][] = [
    ["credit", 402, () => gateways[0]!.key(0.001)],
    ["a daily limit", 429, () => gateways[0]!.key(1, { daily_limit_usd: 0.001 })],
  ];
  for (const [what, code, made] of heldElsewhere) {
    test(`${what} that a request holds at one and does not use can be used at the others once it has ended`, async () => {
      const { key } = await made();
      gates = { held: gate(), arrivals: 0 };
      const open = gateways[0]!.chat(key);
      await until(() => gates.arrivals !== 0);
      const messages = [{ role: "user", content: "at once" }];
      const half = (at: number) => gateways[at]!.chat(key, { messages, max_tokens: 50 });
      expect((await half(1)).status).toBe(code);
      gates.held.open();
      expect((await open).status).toBe(200);
      expect((await half(1)).status).toBe(200);
      expect((await half(2)).status).toBe(200);
    });
  }

  test("credit given at one can be spent at the others at once", async () => {
    const key = await gateways[0]!.key(0);
    const refused = await send(1, key.key);
    expect(refused.status).toBe(402);
    expect(refused.json.error.message).toContain("Add credit: the balance does not even cover the prompt.");
    await gateways[2]!.credit(key.balance_id, 0.01);
    expect((await send(1, key.key)).status).toBe(200);
  });

  test("a credit repeated at another gateway is given once", async () => {
    const key = await gateways[0]!.key(0);
    const credit = { balance_id: key.balance_id, amount_usd: 2, idempotency_key: crypto.randomUUID() };
    const [first, second] = await Promise.all([
      gateways[0]!.admin("/admin/credits", credit),
      gateways[1]!.admin("/admin/credits", credit),
    ]);
    expect(second.json).toEqual(first.json);
    const me = await gateways[2]!.send("GET", "/v1/me", { bearer: key.key });
    expect(me.json.balance_usd).toBe(2);
  });

  test("a key revoked at one is refused by all of them when the answer has come", async () => {
    for (let round = 0; round < 3; round++) {
      const key = await gateways[0]!.key(1);
      for (const at of [0, 1, 2]) expect((await send(at, key.key)).status).toBe(200);
      expect(
        (await gateways[round % 3]!.send("DELETE", `/v1/keys/${key.id}`, { bearer: key.key })).status,
      ).toBe(200);
      for (const at of [0, 1, 2]) expect((await send(at, key.key)).status).toBe(401);
    }
  });

  test("rotation by the recovery secret ends the whole chain everywhere, keys in their grace too", async () => {
    const first = await gateways[0]!.key(1);
    const rotate = (id: string, bearer: string) =>
      gateways[0]!.send("POST", `/v1/keys/${id}/rotate`, { bearer });
    const second = (await rotate(first.id, first.key)).json;
    for (const at of [0, 1, 2])
      for (const { key } of [first, second]) expect((await send(at, key)).status).toBe(200);
    const third = (await rotate(first.id, first.recovery_secret)).json;
    for (const at of [0, 1, 2]) {
      for (const { key } of [first, second]) expect((await send(at, key)).status).toBe(401);
      expect((await send(at, third.key)).status).toBe(200);
    }
  });

  test("a suspension, and its end, are in force everywhere when the answer has come", async () => {
    const key = await gateways[0]!.key(1);
    for (const at of [0, 1, 2]) expect((await send(at, key.key)).status).toBe(200);
    await gateways[0]!.admin(`/admin/accounts/${key.balance_id}/suspend`, { reason: "chargeback" });
    for (const at of [0, 1, 2]) expect((await send(at, key.key)).status).toBe(403);
    await gateways[1]!.admin(`/admin/accounts/${key.balance_id}/unsuspend`, {});
    for (const at of [0, 1, 2]) expect((await send(at, key.key)).status).toBe(200);
  });

  test("a cap that is lowered counts what every gateway has spent, and what it was granted above that", async () => {
    const key = await gateways[0]!.key(1, { daily_limit_usd: 0.5 });
    for (const at of [0, 1, 2]) expect((await send(at, key.key)).status).toBe(200);
    await gateways[1]!.send("PATCH", `/v1/keys/${key.id}`, {
      bearer: key.recovery_secret,
      json: { daily_limit_usd: 0.005 },
    });
    const statuses = await storm([key.key]);
    // Three requests have cost $0.00001 each: four more worst cases fit.
    expect(statuses).toEqual({ 200: 4, 429: MANY - 4 });
    await expectBooksInOrder();
  });

  test("a claim at one, a sign-in at another: the account, its keys and its allowance are everywhere", async () => {
    const key = await gateways[0]!.key(0);
    const limits = async () =>
      Promise.all(
        gateways.map(
          async (one) => (await one.send("GET", "/v1/me", { bearer: key.key })).json.open_tier.limit,
        ),
      );
    expect(await limits()).toEqual([20, 20, 20]);
    const email = `kim-${crypto.randomUUID()}@example.com`;
    const claimed = await gateways[0]!.send("POST", "/v1/me/claim", { bearer: key.key, json: { email } });
    expect(claimed.status).toBe(200);
    const token = await mailedToken(gateways[0]!, email);
    const verified = await gateways[2]!.send("POST", "/v1/auth/email/verify", { json: { token } });
    const { session } = verified.json;
    for (const gateway of gateways) {
      const keys = (await gateway.send("GET", "/v1/keys", { bearer: session })).json.data;
      expect(keys.map((one: { id: string }) => one.id)).toEqual([key.id]);
    }
    expect(await limits()).toEqual([50, 50, 50]);
    const again = await gateways[0]!.send("POST", "/v1/auth/email/verify", { json: { token } });
    expect(again.status).toBe(400);
    const suspend = { reason: "sanctions" };
    const { account_id } = claimed.json;
    expect((await gateways[1]!.admin(`/admin/accounts/${account_id}/suspend`, suspend)).status).toBe(200);
    for (const at of [0, 1, 2]) expect((await send(at, key.key)).status).toBe(403);
    await gateways[2]!.send("POST", "/v1/auth/logout", { bearer: session });
    expect((await gateways[0]!.send("GET", "/v1/keys", { bearer: session })).status).toBe(401);
  });

  test("two claims of one balance at two gateways: one wins", async () => {
    const key = await gateways[0]!.key(0);
    const claim = (at: number) =>
      gateways[at]!.send("POST", "/v1/me/claim", {
        bearer: key.key,
        json: { email: `${crypto.randomUUID()}@example.com` },
      });
    const statuses = (await Promise.all([claim(0), claim(1)])).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 400]);
  });

  test("/metrics tells of the lease, the grants and what is not shipped yet", async () => {
    const key = await gateways[0]!.key(1);
    expect((await send(0, key.key)).status).toBe(200);
    const { text } = await gateways[0]!.admin("/metrics");
    const figure = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
    expect(figure("gateway_lease_seconds")).toBeGreaterThan(0);
    expect(figure("gateway_grant_statements")).toBeGreaterThan(0);
    expect(figure("gateway_granted_usd")).toBeGreaterThan(figure("gateway_stranded_usd"));
    expect(figure("gateway_ship_lag")).toBeGreaterThanOrEqual(0);
  });

  test("receipts are found at every gateway", async () => {
    const key = await gateways[0]!.key(1);
    const reply = await send(0, key.key);
    const id = reply.headers.get("x-gateway-receipt")!;
    const own = await gateways[0]!.send("GET", `/v1/receipts/${id}`, { bearer: key.key });
    expect(own.json.state).toBe("settled");
    const there = await gateways[1]!.send("GET", `/v1/receipts/${id}`, { bearer: key.key });
    expect(there.json).toEqual(own.json);
    const listed = await gateways[2]!.send("GET", "/v1/receipts", { bearer: key.recovery_secret });
    expect(listed.json.data).toEqual([own.json]);
    const usage = await gateways[1]!.send("GET", "/v1/usage", { bearer: key.key });
    expect(usage.json.routes).toHaveLength(1);
  });

  test("what everybody used is shown at each gateway, whichever served it", async () => {
    const key = await gateways[0]!.key(1, { name: "shared" });
    for (const at of [0, 1, 2]) expect((await send(at, key.key)).status).toBe(200);
    const messages = [{ role: "user", content: "in vain" }];
    expect((await gateways[0]!.chat(key.key, { messages })).status).toBe(503);
    for (const gateway of gateways) {
      // A row of an earlier test may be more expensive.
      const seen = async () => {
        const { balances, keys } = (await gateway.admin("/admin/usage?period=day&limit=1000")).json;
        const [balance] = balances.data.filter(
          (row: { balance_id: string }) => row.balance_id === key.balance_id,
        );
        const [named] = keys.data.filter((row: { key_id: string }) => row.key_id === key.id);
        return { balance, named };
      };
      await until(async () => (await seen()).balance?.requests === 4);
      const { balance, named } = await seen();
      expect(balance).toMatchObject({ account_id: null, cost_before_usd: 0, output_tokens: 3 });
      expect(named).toMatchObject({ name: "shared", requests: 4, failed: 1, cost_usd: balance.cost_usd });
    }
  });
});

/** Requests of a storm. */
const MANY = rounds(100, 300);
const AUDITS = rounds(3, 10);

/** From the outbox of the gateway that was asked for it, where there is no mail server. */
async function mailedToken({ gateway }: OpenGateway, email: string): Promise<string> {
  const outbox = join(gateway.folder.path, "outbox");
  let token: string | undefined;
  await until(() => {
    const texts = readdirSync(outbox).map((name) => readFileSync(join(outbox, name), "utf8"));
    token = /#signin=(or-link-\w+)/.exec(texts.find((text) => text.includes(email)) ?? "")?.[1];
    return token !== undefined;
  });
  return token!;
}

const config = (hostUrl: string, store: string): string => `${oneHost(hostUrl)}
setup: { accountless_keys_per_address_per_hour: 1000 }
generation: { first_token_ms: 60000, max_hosts: 3 }
store: ${store}
`;
