import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { json, status as refusal, sse } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { open } from "./open.ts";

/**
 * The Open Tier on real sockets: one model with a free route and a paid one, and a host that can change its
 * mind.
 */
let usage: object;
let status = 200;

const REMAINING = "x-gateway-open-tier-remaining";

beforeEach(async () => {
  usage = { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 };
  status = 200;
});

const { whole, events } = chatText(["ok"], { input: 5, output: 1 });
const free = await startFakeHost((request) => async (wire, seen) => {
  if (request.text().includes("never answered")) return await request.gone;
  if (status !== 200) return refusal(status)(wire, seen);
  if (request.json().stream !== true) return json({ ...whole, usage })(wire, seen);
  const text = events.map(({ data }) =>
    data.includes('"usage":{') ? { data: JSON.stringify({ ...JSON.parse(data), usage }) } : { data },
  );
  return sse(text)(wire, seen);
});
const paid = await startFakeHost(() => json(whole));
const opened = (rpm: string) =>
  open(`
hosts:
  - { id: free, base_url: "${free.url}/v1", speaks: [chat.completions] }
  - { id: paid, base_url: "${paid.url}/v1", speaks: [chat.completions] }
models:
  - id: test/model
    context_length: 1000
    max_output_tokens: 100
    price: { input: 1, output: 10 }
    routes:
      - { host: free, model: free-model, free: true }
      - { host: paid, model: paid-model }
open_tier: { requests_per_day: 50, accountless_requests_per_day: 4, rpm: ${rpm} }
setup: { accountless_keys_per_address_per_hour: 1000 }
`);
const gateway = await opened("null");
afterAll(() => closeAll(gateway, free, paid));

/** Each from a network of its own, as the proxy in front saw it. */
let networks = 0;
const nextNetwork = () => ({ "x-forwarded-for": `198.51.100.${(networks += 1)}` });

const chat = (key: string, headers: Record<string, string>, more: object = {}) =>
  gateway.send("POST", "/v1/chat/completions", {
    bearer: key,
    headers,
    json: {
      model: "test/model:free",
      max_tokens: 10,
      messages: [{ role: "user", content: "Hello" }],
      ...more,
    },
  });

test("each answer says what remains; then 429 until 00:00 UTC, and never a paid call", async () => {
  const { key } = await gateway.key(10);
  const network = nextNetwork();
  const before = paid.requests.length;
  const answers = [];
  for (let index = 0; index < 6; index++) answers.push(await chat(key, network, { stream: index % 2 === 1 }));
  expect(answers.map(({ status: code }) => code)).toEqual([200, 200, 200, 200, 429, 429]);
  expect(answers.map(({ headers }) => headers.get(REMAINING))).toEqual(["3", "2", "1", "0", "0", "0"]);
  const last = answers.at(-1)!;
  expect(last.json.error.code).toBe("free_quota_exceeded");
  const midnightS = (86_400_000 - (Date.now() % 86_400_000)) / 1_000;
  expect(Math.abs(Number(last.headers.get("retry-after")) - midnightS)).toBeLessThan(5);
  expect(paid.requests.length).toBe(before);
  const { json: me } = await gateway.send("GET", "/v1/me", { bearer: key, headers: network });
  expect(me.open_tier).toMatchObject({ limit: 4, used: 4 });
  expect(me.balance_usd).toBe(10);
});

test("new keys on the same network do not help; on another network they do", async () => {
  const network = nextNetwork();
  const keys = await Promise.all(Array.from({ length: 10 }, () => gateway.key(0)));
  const codes = await Promise.all(keys.map(async ({ key }) => (await chat(key, network)).status));
  expect(codes.filter((code) => code === 200)).toHaveLength(4);
  const refused = keys[codes.indexOf(429)]!;
  expect((await chat(refused.key, network)).json.error.message).toContain("from this network");
  expect((await chat(refused.key, nextNetwork())).status).toBe(200);
});

test.each(["models", "provider", "route", "fallbacks"])("`%s` is refused, not ignored", async (field) => {
  const { key } = await gateway.key(0);
  const answer = await chat(key, nextNetwork(), { [field]: field === "provider" ? {} : ["a/b"] });
  expect(answer.status).toBe(400);
  expect(answer.json.error).toMatchObject({ code: "invalid_request", param: field });
  expect(answer.headers.get(REMAINING)).toBe("4");
});

test("its own rate counts free requests only, and says that the operator sets it", async () => {
  const strict = await opened("1");
  const { key } = await strict.key(10);
  const send = (model: string) => strict.chat(key, { model });
  for (let index = 0; index < 3; index++) expect((await send("test/model")).status).toBe(200);
  expect((await send("test/model:free")).status).toBe(200);
  const refused = await send("test/model:free");
  expect(refused.json.error.code).toBe("rate_limited");
  expect(refused.json.error.message).toMatch(/at most 1 requests per minute .*`open_tier\.rpm`.*operator/);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await send("test/model")).status).toBe(200);
  await strict.close();
});

test("a spent allowance is named before the minute's rate: waiting a minute would not help", async () => {
  const both = await opened("4");
  const { key } = await both.key(0);
  const codes = [];
  for (let index = 0; index < 5; index++) {
    const { status: code, json: body } = await both.chat(key, { model: "test/model:free" });
    codes.push(body?.error?.code ?? code);
  }
  expect(codes).toEqual([200, 200, 200, 200, "free_quota_exceeded"]);
  await both.close();
});

test.each([true, false])(
  "who leaves once a host was asked has used the allowance, streamed %p",
  async (stream) => {
    const { key } = await gateway.key(0);
    const network = nextNetwork();
    const me = async () =>
      (await gateway.send("GET", "/v1/me", { bearer: key, headers: network })).json.open_tier;
    for (let left = 1; left <= 4; left++) {
      const before = free.requests.length;
      const leaving = new AbortController();
      const request = fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, ...network },
        body: JSON.stringify({
          model: "test/model:free",
          max_tokens: 10,
          stream,
          messages: [{ role: "user", content: "never answered" }],
        }),
        signal: leaving.signal,
      });
      request.catch(() => {});
      await until(() => free.requests.length > before);
      leaving.abort();
      await until(async () => (await me()).used === left);
    }
    expect((await chat(key, network, { stream })).json.error.code).toBe("free_quota_exceeded");
  },
);

test("a paid answer has no such header", async () => {
  const { key } = await gateway.key(1);
  const answer = await chat(key, {}, { model: "test/model" });
  expect([answer.status, answer.headers.get(REMAINING)]).toEqual([200, null]);
});

describe("the first doubt takes the route out", () => {
  test.each<[string, () => void, number, object]>([
    ["a charge next to an answer", () => charge(0.002), 200, {}],
    ["a charge next to a stream", () => charge(0.002), 200, { stream: true }],
    ["402", () => (status = 402), 503, {}],
    ["401", () => (status = 401), 503, {}],
  ])("%s", async (_name, turn, first, more) => {
    await verified();
    const { key } = await gateway.key(10);
    const network = nextNetwork();
    turn();
    expect((await chat(key, network, more)).status).toBe(first);
    const before = [free.requests.length, paid.requests.length];
    const next = await chat(key, network);
    expect(next.json.error.code).toBe("no_free_route");
    // Failed requests cost no allowance.
    expect(next.headers.get(REMAINING)).toBe(first === 200 ? "3" : "4");
    expect([free.requests.length, paid.requests.length]).toEqual(before);
    const { json: me } = await gateway.send("GET", "/v1/me", { bearer: key, headers: network });
    expect(me.balance_usd).toBe(10);
  });

  function charge(cost: number): void {
    usage = { ...usage, cost };
  }

  /** A reload probes the route again. */
  async function verified(): Promise<void> {
    await gateway.admin("/admin/reload", {});
    const { key } = await gateway.key(0);
    await until(async () => (await chat(key, nextNetwork())).status === 200);
  }
});
