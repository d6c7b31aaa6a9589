import { afterAll, describe, expect, test } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { open } from "./open.ts";

/**
 * What programs made for OpenRouter or LiteLLM ask a gateway about their key, their credit and a request: the
 * same numbers as the gateway's own endpoints, from real requests on real sockets.
 */
/** 7 and 3 tokens at $1 and $2 a million. */
const COST = 0.000013;

const host = await startFakeHost(() => json(chatText(["Hello", " there"], { input: 7, output: 3 }).whole));
const gateway = await open(`
hosts:
  - { id: h, base_url: "${host.url}/v1", speaks: [chat.completions] }
models:
  - { id: test/model, context_length: 100000, max_output_tokens: 4000, price: { input: 1, output: 2 }, routes: [{ host: h, model: m }] }
`);
const mine = await gateway.key(10, { name: "bot", daily_limit_usd: 2, monthly_limit_usd: 3, rpm_limit: 90 });
const answer = await gateway.chat(mine.key);
expect(answer.status).toBe(200);
const receipt = answer.headers.get("x-gateway-receipt")!;
afterAll(() => closeAll(gateway, host));

test("a fleet that asks about its keys at once is answered, each of them", async () => {
  const answers = await Promise.all(Array.from({ length: 100 }, () => get("/v1/key")));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  for (const { json } of answers) {
    expect(json.data).toMatchObject({ limit: 2, usage_monthly: COST });
    expect(json.data.usage_weekly).toBeOneOf([COST, null]);
  }
});

const get = (path: string, bearer = mine.key) => gateway.send("GET", path, { bearer });

describe("OpenRouter's", () => {
  test.each(["/v1/key", "/v1/auth/key", "/v1/v1/key"])(
    "%s: limit, what is left of it, and use",
    async (path) => {
      const { status, json } = await get(path);
      expect(status).toBe(200);
      expect(json.data).toMatchObject({
        label: "bot",
        limit: 2,
        limit_reset: "daily",
        limit_remaining: 2 - COST,
        usage: COST,
        usage_daily: COST,
        usage_weekly: COST,
        usage_monthly: COST,
        is_free_tier: false,
        free_model_daily_requests: { limit: 20, used: 0, remaining: 20 },
        creator_user_id: null,
        expires_at: null,
        rate_limit: { requests: 90, interval: "1m" },
      });
    },
  );

  test("key: of two caps the one with less left, and none where there is none", async () => {
    const set = (fields: object) =>
      gateway.send("PATCH", `/v1/keys/${other.id}`, { bearer: other.recovery_secret, json: fields });
    const other = await gateway.key(0, { daily_limit_usd: 5, monthly_limit_usd: 4 });
    const shown = async () => (await get("/v1/key", other.key)).json.data;
    expect(await shown()).toMatchObject({ limit: 4, limit_reset: "monthly", limit_remaining: 4 });
    await set({ monthly_limit_usd: null, rpm_limit: null });
    expect(await shown()).toMatchObject({ limit: 5, limit_reset: "daily", rate_limit: { requests: -1 } });
    await set({ daily_limit_usd: null });
    expect(await shown()).toMatchObject({
      limit: null,
      limit_reset: null,
      limit_remaining: null,
      is_free_tier: true,
      label: expect.stringMatching(/^or-live-.{4}…$/),
    });
  });

  test("credits: what was credited less what was taken back, and what is spent", async () => {
    expect((await get("/v1/credits")).json).toEqual({ data: { total_credits: 10, total_usage: COST } });
    const more = await gateway.key(5);
    const back = { balance_id: more.balance_id, amount_usd: 2, idempotency_key: crypto.randomUUID() };
    expect((await gateway.admin("/admin/debits", back)).status).toBe(200);
    expect((await get("/v1/credits", more.key)).json).toEqual({ data: { total_credits: 3, total_usage: 0 } });
  });

  test("credits of an owner are a list, as before", async () => {
    const { json } = await get("/v1/credits", mine.recovery_secret);
    expect(json.data.map(({ amount_usd }: { amount_usd: number }) => amount_usd)).toEqual([10]);
  });

  test.each(["key", "recovery_secret"] as const)(
    "generation, by the %s: what its receipt says",
    async (by) => {
      const { json } = await get(`/v1/generation?id=${receipt}`, mine[by]);
      const kept = (await get(`/v1/receipts/${receipt}`)).json;
      expect(json.data).toMatchObject({
        id: receipt,
        created_at: kept.created_at,
        model: "test/model",
        provider_name: "h",
        total_cost: COST,
        usage: COST,
        tokens_prompt: 7,
        tokens_completion: 3,
        native_tokens_prompt: 7,
        native_tokens_completion: 3,
        generation_time: kept.total_ms,
        streamed: false,
        cancelled: false,
        upstream_id: null,
        finish_reason: null,
      });
    },
  );

  test.each([
    ["without an id", "/v1/generation", "`id` is missing"],
    ["of nothing", "/v1/generation?id=chatcmpl-1", "x-gateway-receipt"],
  ])("generation %s is refused, and says which id", async (_, path, why) => {
    const { status, json } = await get(path);
    expect([status, json.error.code, json.error.param]).toEqual([400, "invalid_request", "id"]);
    expect(json.error.message).toContain(why);
  });

  test("another balance's generation is nobody's", async () => {
    const other = await gateway.key(0);
    expect((await get(`/v1/generation?id=${receipt}`, other.key)).status).toBe(400);
  });
});

describe("LiteLLM's /key/info", () => {
  test("shows the key's limits and use, and never a secret or a hash", async () => {
    const { status, json, text } = await get("/key/info");
    expect(status).toBe(200);
    expect(json).toMatchObject({
      key: mine.id,
      info: {
        key_alias: "bot",
        spend: COST,
        max_budget: 2,
        budget_duration: "1d",
        expires: null,
        models: [],
        rpm_limit: 90,
        blocked: false,
        user_id: null,
      },
    });
    expect(Date.parse(json.info.budget_reset_at)).toBeGreaterThan(Date.now());
    expect(text).not.toContain(mine.key);
  });

  test("takes its own name, the key or its id, and no other", async () => {
    const other = await gateway.key(0);
    for (const own of [mine.key, mine.id]) expect((await get(`/key/info?key=${own}`)).status).toBe(200);
    for (const foreign of [other.key, other.id]) {
      const { status, json, text } = await get(`/key/info?key=${foreign}`);
      expect([status, json.error.param]).toEqual([400, "key"]);
      expect(text).not.toContain(foreign);
    }
  });
});

test.each(["/v1/completions", "/completions", "/v1/v1/completions", "/api/v1/completions"])(
  "%s names the way to chat",
  async (path) => {
    const { json } = await gateway.send("POST", path, {
      bearer: mine.key,
      json: { model: "test/model", prompt: "Once" },
    });
    expect(json.error.code).toBe("unsupported_endpoint");
    for (const served of ["POST /v1/chat/completions", "/v1/responses", "/v1/messages"])
      expect(json.error.message).toContain(served);
    expect(json.error.message).toContain('"messages": [{"role": "user"');
  },
);
