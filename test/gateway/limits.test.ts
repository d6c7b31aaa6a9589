import { afterAll, describe, expect, test } from "bun:test";
import { json, sse } from "../fakes/behaviours.ts";
import { gate } from "../fakes/gate.ts";
import { startFakeHost } from "../fakes/host.ts";
import { oneHost } from "../fakes/one-host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { type Made, open } from "./open.ts";

/** Strict limits under a thousand requests at once, on real sockets. Each request holds exactly $0.001. */

const { whole, events } = chatText(["ok"], { input: 10, output: 1 });
let gates = { held: gate(), arrivals: 0 };
const host = await startFakeHost((request) => async (wire, seen) => {
  gates.arrivals += 1;
  // Nothing is answered, so nothing given back, until every request was admitted or refused.
  if (!request.text().includes("at once")) await gates.held.passed;
  const behaviour = request.json().stream === true ? sse(events) : json(whole);
  await behaviour(wire, seen);
});
const gateway = await open(`${oneHost(host.url)}
setup: { accountless_keys_per_address_per_hour: 1000 }
generation: { first_token_ms: 60000, max_hosts: 3 }
`);
afterAll(async () => {
  gates.held.open();
  await gateway.close();
  await host.close();
});

const COST = 0.001;
const REQUESTS = 1_000;
const COVERED = 10;

/** Sends them all over the keys in turn; lets the host answer once all are decided. */
async function storm(keys: readonly string[]): Promise<Map<number, number>> {
  gates = { held: gate(), arrivals: 0 };
  let refused = 0;
  const statuses = new Map<number, number>();
  const replies = Array.from({ length: REQUESTS }, async (_, index) => {
    const reply = await gateway.chat(keys[index % keys.length]!, { max_tokens: 100 });
    if (reply.status !== 200) refused += 1;
    statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
  });
  await until(() => refused + gates.arrivals >= REQUESTS);
  gates.held.open();
  await Promise.all(replies);
  return statuses;
}

const both = (admitted: number, refusal: number) =>
  new Map([
    [200, admitted],
    [refusal, REQUESTS - admitted],
  ]);
const sorted = (statuses: Map<number, number>) => new Map([...statuses].sort(([a], [b]) => a - b));

async function drift(): Promise<unknown> {
  const { json: audit } = await gateway.admin("/admin/ledger/audit");
  return { drift: audit.drift_nano, held: audit.held_nano };
}
const RIGHT = { drift: "0", held: "0" };

describe("a thousand concurrent requests, ten of which are covered", () => {
  test("by credit: 10 admitted, 990 × 402, drift 0", async () => {
    const { key } = await gateway.key(COVERED * COST);
    expect(sorted(await storm([key]))).toEqual(both(COVERED, 402));
    expect(await drift()).toEqual(RIGHT);
  });

  test.each([
    ["by the daily cap", { daily_limit_usd: COVERED * COST }],
    ["by the monthly cap", { monthly_limit_usd: COVERED * COST }],
    ["by requests per minute", { rpm_limit: COVERED }],
    ["by tokens per minute", { tpm_limit: 1_349 }],
  ])("%s: 10 admitted, 990 × 429, drift 0", async (_name, limits) => {
    const { key } = await gateway.key(100, limits);
    const statuses = sorted(await storm([key]));
    if ("tpm_limit" in limits) {
      // Each request is estimated at 100 tokens of answer and what its body has of prompt.
      expect(statuses.get(200)).toBeGreaterThan(8);
      expect(statuses.get(200)).toBeLessThan(12);
    } else expect(statuses).toEqual(both(COVERED, 429));
    expect(await drift()).toEqual(RIGHT);
  });

  test("by a budget that 50 keys share: 10 admitted, 990 × 429, drift 0", async () => {
    const first = await gateway.key(100);
    const owner = { bearer: first.recovery_secret };
    const budget = { name: "team", cap_usd: COVERED * COST, window: "day" };
    expect((await gateway.send("POST", "/v1/budgets", { ...owner, json: budget })).status).toBe(201);
    const keys = await Promise.all(
      Array.from({ length: 50 }, () =>
        gateway.send("POST", "/v1/keys", { ...owner, json: { budget: "team" } }),
      ),
    );
    expect(sorted(await storm(keys.map(({ json: made }) => made.key)))).toEqual(both(COVERED, 429));
    expect(await drift()).toEqual(RIGHT);
  });
});

describe("what open requests hold", () => {
  const MOST = { max_tokens: 100 };
  /** What is refused while another request holds `COST`. */
  async function refusedNextTo(creditUsd: number, limits: object, request: object = MOST) {
    const { key } = await gateway.key(creditUsd, limits);
    gates = { held: gate(), arrivals: 0 };
    const holding = gateway.chat(key, MOST);
    await until(() => gates.arrivals !== 0);
    const { status, headers, json } = await gateway.chat(key, request);
    const fitting = /max_tokens to at most (\d+)/.exec(json.error.message)?.[1];
    const shorter = fitting === undefined ? null : await admitted(key, Number(fitting));
    const longer = fitting === undefined ? null : await admitted(key, Number(fitting) + 1);
    gates.held.open();
    expect((await holding).status).toBe(200);
    const [after, retry] = [Number(headers.get("retry-after")), headers.get("x-should-retry")];
    const again = (await gateway.chat(key, request)).status;
    return { status, after, retry, message: json.error.message as string, shorter, longer, again };
  }

  async function admitted(key: string, max_tokens: number): Promise<boolean> {
    const messages = [{ role: "user", content: "at once" }];
    return (await gateway.chat(key, { max_tokens, messages })).status === 200;
  }

  test("fills a cap for seconds: the answer says what is used and held, and that a retry helps", async () => {
    const refused = await refusedNextTo(100, { daily_limit_usd: COST * 1.5 });
    expect(refused).toMatchObject({ status: 429, after: 5, retry: null, again: 200 });
    expect(refused.message).toContain("$0.00 is used, and $0.001 is held by open requests");
    expect(refused.message).toContain("retry in 5 s");
  });

  test("leaves room for a shorter answer, whose ceiling is named exactly", async () => {
    const refused = await refusedNextTo(100, { monthly_limit_usd: COST * 1.5 });
    expect(refused).toMatchObject({ shorter: true, longer: false });
  });

  test("does not make a request fit that is above the cap without it: the error says to leave it out", async () => {
    const refused = await refusedNextTo(100, { daily_limit_usd: COST * 1.5 }, { ...MOST, n: 2 });
    expect(refused).toMatchObject({ status: 429, retry: "false", again: 429 });
    expect(refused.after).toBeGreaterThan(5);
    expect(refused.message).toContain("waiting will not help");
  });

  test("is named next to what is left of a balance, and what would fit", async () => {
    const refused = await refusedNextTo(COST * 1.5, {});
    expect(refused).toMatchObject({ status: 402, shorter: true, longer: false, again: 200 });
    expect(refused.message).toContain(
      "The balance of $0.0005, with $0.001 more held by open requests, cannot cover",
    );
    expect(refused.message).toContain("Wait until open requests end");
  });
});

describe("rotation and revocation", () => {
  const spend = (made: Pick<Made, "key">, more = {}) =>
    gateway.chat(made.key, { max_tokens: 100, messages: [{ role: "user", content: "at once" }], ...more });

  test("rotating never resets a cap, and both keys draw from the same", async () => {
    const made = await gateway.key(100, { daily_limit_usd: COST });
    expect((await spend(made)).status).toBe(200);
    const rotated = await gateway.send("POST", `/v1/keys/${made.id}/rotate`, { bearer: made.key });
    expect(rotated.json.old_key.id).toBe(made.id);
    for (const key of [made.key, rotated.json.key]) {
      const refused = await spend({ key });
      expect(refused.json.error.code).toBe("budget_exhausted");
    }
  });

  test("rotation by the recovery secret replaces the key at once, and the secret stays valid", async () => {
    const made = await gateway.key(100);
    const rotated = await gateway.send("POST", `/v1/keys/${made.id}/rotate`, {
      bearer: made.recovery_secret,
    });
    expect((await spend(made)).status).toBe(401);
    expect((await spend(rotated.json)).status).toBe(200);
    expect((await gateway.send("GET", "/v1/keys", { bearer: made.recovery_secret })).status).toBe(200);
  });

  test("a revoked key is refused on the very next request, while its stream runs to its end", async () => {
    gates = { held: gate(), arrivals: 0 };
    const made = await gateway.key(100);
    const streaming = gateway.chat(made.key, { stream: true, max_tokens: 100 });
    await until(() => gates.arrivals !== 0);
    expect((await gateway.send("DELETE", `/v1/keys/${made.id}`, { bearer: made.key })).json.state).toBe(
      "revoked",
    );
    expect((await spend(made)).status).toBe(401);
    gates.held.open();
    expect((await streaming).text).toEndWith("data: [DONE]\n\n");
    expect(await drift()).toEqual(RIGHT);
  });
});

test("a balance is credited with at most $8,000,000 in all, which is counted exactly", async () => {
  const { balance_id, key } = await gateway.key(8_000_000);
  const credit = (amount_usd: number) =>
    gateway.admin("/admin/credits", { balance_id, amount_usd, idempotency_key: "much" });
  const refused = await credit(0.000000001);
  expect(refused.status).toBe(400);
  expect(refused.json.error).toMatchObject({ code: "invalid_request", param: "amount_usd" });
  expect((await credit(0.000000001)).status).toBe(400);
  expect((await gateway.send("GET", "/v1/me", { bearer: key })).json.balance_usd).toBe(8_000_000);
  expect(await drift()).toEqual(RIGHT);
});
