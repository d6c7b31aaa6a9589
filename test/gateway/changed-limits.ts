import { afterAll, beforeAll, expect, test } from "bun:test";
import { sse } from "../fakes/behaviours.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { type Made, type OpenGateway, open } from "./open.ts";

/**
 * What is promised of streams whose key, budget or balance is changed while they run, whatever the store and
 * however many gateways. A stream holds some $0.03 at its beginning, for 1,200 words; its host writes 1,600.
 */
export function testChangedLimits(count: number, store: () => Promise<string>): void {
  let host: FakeHost;
  let gateways: OpenGateway[] = [];
  let arrivals = 0;
  let changed: Gate<void> = gate();
  let streams = 0;
  const range = Array.from({ length: MAX_STREAMS }, (_, n) => n);

  beforeAll(async () => {
    const pieces = Array.from({ length: WORDS / PIECE }, () => " word".repeat(PIECE));
    const { events } = chatText(pieces, { input: 10, output: WORDS });
    host = await startFakeHost((_request) => async (wire, seen) => {
      arrivals += 1;
      // It writes as fast as a quick model does: other nodes' answers come within the words that are held ahead.
      const before = (n: number) => (n === 5 ? changed.passed : Bun.sleep(20));
      await sse(events, { before })(wire, seen);
    });
    // A model and a host for each stream: what is held of a host that was measured follows its pace.
    const hosts = range.map(
      (n) => `  - { id: h${n}, base_url: "${host.url}/v1", speaks: [chat.completions] }`,
    );
    const models = range.map(
      (n) => `  - id: test/model${n}
    context_length: 100000
    max_output_tokens: 20000
    price: { input: 0, output: 25 }
    routes: [{ host: h${n}, model: host-model }]`,
    );
    const config = `
hosts:
${hosts.join("\n")}
models:
${models.join("\n")}
generation: { default_max_output_tokens: 1200, first_token_ms: 10000 }
setup: { accountless_keys_per_address_per_hour: 1000 }
${await store()}`;
    gateways = await Promise.all(Array.from({ length: count }, () => open(config)));
  });
  afterAll(async () => {
    changed.open();
    for (const gateway of gateways) await gateway.close();
    await host.close();
  });

  let turn = 0;
  const any = () => gateways[turn++ % count]!;
  const patch = async (owner: Made, json: object) => {
    const { status } = await any().send("PATCH", `/v1/keys/${owner.id}`, {
      bearer: owner.recovery_secret,
      json,
    });
    expect(status).toBe(200);
  };
  const capBudget = async (owner: Made, name: string, cap_usd: number) => {
    const path = `/v1/budgets/${name}`;
    const { status } = await any().send("PATCH", path, { bearer: owner.recovery_secret, json: { cap_usd } });
    expect(status).toBe(200);
  };
  /** Whether the request is served or not, the run is as it says from then on. */
  const tighten = async ({ key }: Made, run: string) => {
    const messages = [{ role: "user", content: "Hello" }];
    const json = { model: "test/model0", messages, max_tokens: 1 };
    const asking = any().send("POST", "/v1/chat/completions", {
      bearer: key,
      json,
      headers: { "x-gateway-run": run },
    });
    asking.catch(() => {});
    await until(async () => {
      const { json } = await any().send("GET", "/v1/usage?run=job", { bearer: key });
      return json.run.cap_usd === Math.min(20, Number(run.split("=")[1]));
    });
  };
  const suspend = async ({ balance_id }: Made, way: "suspend" | "unsuspend") => {
    const body = way === "suspend" ? { reason: "acceptable_use" } : {};
    const { status } = await any().admin(`/admin/accounts/${balance_id}/${way}`, body);
    expect(status).toBe(200);
  };

  const CHANGES: [what: string, stop: Stop | null, change: (owner: Made) => Promise<unknown>][] = [
    ["nothing happens", null, async () => {}],
    [
      "the daily cap is lowered to a thousandth",
      ["budget_exhausted", /key's `daily_limit_usd` caps spending at \$0\.001: \$0(\.\d+)? is used/],
      (owner) => patch(owner, { daily_limit_usd: 0.001 }),
    ],
    [
      "the monthly cap is",
      ["budget_exhausted", /key's `monthly_limit_usd` caps spending at \$0\.001/],
      (owner) => patch(owner, { monthly_limit_usd: 0.001 }),
    ],
    [
      "the daily cap is lowered, but not below what it needs",
      null,
      (owner) => patch(owner, { daily_limit_usd: 1 }),
    ],
    [
      "the budget's cap is lowered",
      ["budget_exhausted", /budget `wide` caps spending at \$0\.001/],
      (owner) => capBudget(owner, "wide", 0.001),
    ],
    [
      "the key is moved to a budget without room",
      ["budget_exhausted", /budget `narrow` caps spending at \$0\.0001/],
      (owner) => patch(owner, { budget: "narrow" }),
    ],
    ["the key is moved to a budget with room", null, (owner) => patch(owner, { budget: "other" })],
    ["the key is taken out of its budget", null, (owner) => patch(owner, { budget: null })],
    [
      "its budget is deleted once the key is moved",
      null,
      async (owner) => {
        await patch(owner, { budget: "other" });
        await any().send("DELETE", "/v1/budgets/wide", { bearer: owner.recovery_secret });
      },
    ],
    [
      "the key is revoked",
      ["invalid_api_key", /revoked or expired/],
      (owner) => any().send("DELETE", `/v1/keys/${owner.id}`, { bearer: owner.recovery_secret }),
    ],
    [
      "the balance is suspended",
      ["account_suspended", /suspended after an acceptable-use breach/],
      (owner) => suspend(owner, "suspend"),
    ],
    [
      "it is suspended, and the suspension lifted",
      null,
      async (owner) => {
        await suspend(owner, "suspend");
        await suspend(owner, "unsuspend");
      },
    ],
    [
      "its run is tightened",
      ["budget_exhausted", /run `job` caps spending at \$0\.001/],
      (owner) => tighten(owner, "job; usd=0.001"),
    ],
    ["its run is tightened to what it needs", null, (owner) => tighten(owner, "job; usd=1")],
    ["its run is named with a wider limit", null, (owner) => tighten(owner, "job; usd=30")],
    [
      "its credit is taken back",
      ["insufficient_credit", /balance/],
      ({ balance_id }) =>
        any().admin("/admin/debits", { balance_id, amount_usd: "all", idempotency_key: crypto.randomUUID() }),
    ],
  ];

  /** Another gateway has it once the books have. */
  async function receiptOf(id: string, { recovery_secret: bearer }: Made) {
    let receipt: Awaited<ReturnType<OpenGateway["send"]>> | undefined;
    await until(async () => {
      receipt = await any().send("GET", `/v1/receipts/${id}`, { bearer });
      return receipt.status === 200;
    });
    return receipt!.json;
  }

  test.each(CHANGES)("a stream that holds $0.03 when %s: ends as %p", async (_what, stop, change) => {
    const owner = await any().key(10, { daily_limit_usd: 20 });
    for (const [name, cap_usd] of [
      ["wide", 20],
      ["narrow", 0.0001],
      ["other", 20],
    ] as const) {
      const json = { name, cap_usd, window: "day" };
      await any().send("POST", "/v1/budgets", { bearer: owner.recovery_secret, json });
    }
    await patch(owner, { budget: "wide" });
    changed = gate();
    const before = arrivals;
    const messages = [{ role: "user", content: "Hello" }];
    const reading = any().send("POST", "/v1/chat/completions", {
      bearer: owner.key,
      headers: { "x-gateway-run": "job; usd=20" },
      json: { model: `test/model${streams++}`, messages, stream: true },
    });
    await until(() => arrivals > before);
    await change(owner);
    changed.open();
    const { text, headers } = await reading;
    const receipt = await receiptOf(headers.get("x-gateway-receipt")!, owner);
    expect(text.includes("[DONE]")).toBe(stop === null);
    if (stop === null) expect(receipt.cost_usd).toBe(COST_USD);
    else {
      const [code, why] = stop;
      const { error } = text
        .split("\n\n")
        .map((event) => JSON.parse(event.match(/^data: (.*)$/m)?.[1] ?? "{}"))
        .find((event) => event.error !== undefined);
      expect([error.code, receipt.error_code]).toEqual([code, code]);
      expect(error.message).toMatch(why);
      expect(error.message).toContain(`cost $${receipt.cost_usd}`);
      expect(receipt.cost_usd).toBeLessThan(0.035);
    }
    expect(receipt.cost_usd).toBeGreaterThan(0);
    expect((await any().admin("/admin/ledger/audit")).json).toMatchObject({ ok: true, drift_nano: "0" });
  });

  test("a budget whose window is changed shows what was spent in that, there and back", async () => {
    const owner = await any().key(10);
    const bearer = owner.recovery_secret;
    await any().send("POST", "/v1/budgets", { bearer, json: { name: "team", cap_usd: 1, window: "day" } });
    await patch(owner, { budget: "team" });
    changed.open();
    const messages = [{ role: "user", content: "Hello" }];
    const json = { model: `test/model${streams++}`, messages, stream: true };
    await any().send("POST", "/v1/chat/completions", { bearer: owner.key, json });
    for (const window of ["week", "month", "total", "day", "month"]) {
      await any().send("PATCH", "/v1/budgets/team", { bearer, json: { window } });
      const used = async () => (await any().send("GET", "/v1/budgets/team", { bearer })).json.used_usd;
      // What one gateway charged, the others know within some milliseconds.
      await until(async () => (await used()) === COST_USD);
    }
  });
}

/** The error's code, and what its message has to say. */
type Stop = [code: string, why: RegExp];

const WORDS = 1_600;
const PIECE = 20;
const COST_USD = 0.04;
const MAX_STREAMS = 20;
