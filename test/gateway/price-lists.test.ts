import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { json, sse } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { ADMIN } from "../process/gateway.ts";
import { open } from "./open.ts";

/** A thousand tokens in and ten out: $0.002 at the model's own price, which is 1 and 100. */
const { whole, events } = chatText(["a", "b"], { input: 1_000, output: 10 });
let arrived = gate();
let held: Gate<void> | null = null;
const host = await startFakeHost((request) => {
  if (request.json().stream !== true) return json(whole);
  return sse(events, {
    async before(n) {
      if (n !== 2 || held === null) return;
      arrived.open();
      await held.passed;
    },
  });
});
const config = (lists: string) => `
hosts: [{ id: h, base_url: "${host.url}/v1", speaks: [chat.completions] }]
models:
  - id: test/model
    context_length: 10000
    max_output_tokens: 1000
    price: { input: 1, output: 100 }
    routes: [{ host: h, model: m }]
  - id: test/other
    context_length: 10000
    max_output_tokens: 1000
    price: { input: 3, output: 4 }
    routes: [{ host: h, model: m }, { host: h, model: n, price: { input: 5, output: 6 } }]
receipts: { sign: true }
price_lists: { ${lists} }
`;
const LISTS = `
  partner: [{ model: test/model, factor: 0.5 }, { model: "*", factor: 2 }],
  fixed: [{ model: "test/m*", price: { input: 10, output: 0 } }]
`;
const gateway = await open(config(LISTS));
afterAll(() => closeAll(gateway, host));
beforeEach(() => {
  arrived = gate();
  held = null;
});

const PROMPT = { messages: [{ role: "user", content: "word ".repeat(999) }] };
const put = (path: string, price_list: string | null) =>
  gateway.send("PATCH", path, { bearer: ADMIN, json: { price_list } });
const priceOf = async (bearer: string, id = "test/model") => {
  const { data, price_list } = (await gateway.send("GET", "/v1/catalog", { bearer })).json;
  const { input, output } = data.find((entry: { id: string }) => entry.id === id).price;
  return { price_list, input, output };
};
const charged = async (bearer: string, more: object = {}) => {
  const reply = await gateway.chat(bearer, { ...PROMPT, ...more });
  const { json: receipt } = await gateway.receipt(reply, bearer);
  return { cost: receipt.cost_usd, list: receipt.price_list, version: receipt.price.version, receipt };
};

describe("a customer on a price list", () => {
  test.each([
    ["no list", null, null, { cost: 0.002, list: undefined, input: 1, output: 100 }],
    ["a list of the balance", "partner", null, { cost: 0.001, list: "partner", input: 0.5, output: 50 }],
    ["a list of the key", null, "fixed", { cost: 0.01, list: "fixed", input: 10, output: 0 }],
    ["a list of each: the key's", "partner", "fixed", { cost: 0.01, list: "fixed", input: 10, output: 0 }],
  ])(
    "%s: catalog, models, answer, receipt and books name one price",
    async (_, ofBalance, ofKey, expected) => {
      const { key, id, balance_id, recovery_secret } = await gateway.key(1);
      expect((await put(`/admin/balances/${balance_id}`, ofBalance)).json.price_list).toBe(ofBalance);
      expect((await put(`/admin/keys/${id}`, ofKey)).json.price_list).toBe(ofKey);

      const { list, input, output, cost } = expected;
      expect(await priceOf(key)).toEqual({ price_list: list ?? null, input, output });
      const { json: model } = await gateway.send("GET", "/v1/models/test/model", { bearer: key });
      expect([Number(model.pricing.prompt), Number(model.pricing.completion)]).toEqual([
        input / 1e6,
        output / 1e6,
      ]);
      // Owners see what keys without a list of their own pay.
      const owners = ofBalance === null ? null : "partner";
      expect((await priceOf(recovery_secret)).price_list).toBe(owners);

      for (const stream of [false, true]) {
        const paid = await charged(key, { stream });
        expect([paid.cost, paid.list]).toEqual([cost, list]);
        const { price, tokens } = paid.receipt;
        expect(price).toMatchObject({ input, output });
        expect((tokens.input * price.input + tokens.output * price.output) / 1e6).toBeCloseTo(cost, 12);
        const { json: catalog } = await gateway.send("GET", "/v1/catalog", { bearer: key });
        expect(price.version).toBe(catalog.price_version);
      }
      const reply = await gateway.chat(key, PROMPT);
      expect(reply.json.usage.cost).toBe(cost);
      const { text } = await gateway.send("GET", `/v1/receipts/${reply.headers.get("x-gateway-receipt")}`, {
        bearer: key,
        headers: { accept: "application/jose" },
      });
      expect(JSON.parse(Buffer.from(text.split(".")[1]!, "base64url").toString()).price_list).toBe(list);
      const { json: usage } = await gateway.send("GET", "/v1/usage", { bearer: key });
      expect(usage.keys[0].cost_usd).toBeCloseTo(3 * cost, 12);
      expect((await gateway.admin(`/admin/balances/${balance_id}`)).json.balance_usd).toBeCloseTo(
        1 - 3 * cost,
        12,
      );
    },
  );

  test("is refused for lack of credit at the list's price, and admitted where that is covered", async () => {
    // A thousand tokens of answer, and no more than 6,000 bytes of prompt.
    const { key, balance_id } = await gateway.key(0.06);
    const send = () => gateway.chat(key, { max_tokens: 1_000 });
    const first = await send();
    expect(first.status).toBe(402);
    await put(`/admin/balances/${balance_id}`, "partner");
    expect((await send()).status).toBe(200);
    await put(`/admin/balances/${balance_id}`, null);
    expect((await send()).json.error.message).toContain("worst case is $0.10");
  });

  test("pays what a host of its own price costs, times the factor", async () => {
    const { key, balance_id } = await gateway.key(1);
    await put(`/admin/balances/${balance_id}`, "partner");
    const paid = await charged(key, { model: "test/other", provider: { order: ["h"] } });
    expect(paid.receipt.price).toMatchObject({ input: 6, output: 8 });
  });

  test("pays by model with one key, and another customer pays something else for the same models", async () => {
    const [a, b, c] = [await gateway.key(1), await gateway.key(1), await gateway.key(1)];
    await put(`/admin/balances/${a.balance_id}`, "partner");
    await put(`/admin/balances/${b.balance_id}`, "fixed");
    const paidFor = async ({ key }: { key: string }) => {
      const model = (await charged(key)).receipt;
      const other = (await charged(key, { model: "test/other", provider: { order: ["h"] } })).receipt;
      return [model, other].map(({ price_list, price }) => [price_list, price.input, price.output]);
    };
    // The first rule that matches decides, and a model without one keeps its own price, as without a list.
    expect(await paidFor(a)).toEqual([
      ["partner", 0.5, 50],
      ["partner", 6, 8],
    ]);
    expect(await paidFor(b)).toEqual([
      ["fixed", 10, 0],
      ["fixed", 3, 4],
    ]);
    expect(await paidFor(c)).toEqual([
      [undefined, 1, 100],
      [undefined, 3, 4],
    ]);
  });

  test("keeps the list when its key is rotated, and an owner's own key has the balance's", async () => {
    const { key, id, balance_id, recovery_secret } = await gateway.key(1);
    await put(`/admin/balances/${balance_id}`, "partner");
    await put(`/admin/keys/${id}`, "fixed");
    const rotated = await gateway.send("POST", `/v1/keys/${id}/rotate`, { bearer: key });
    expect(rotated.json.price_list).toBe("fixed");
    expect((await charged(rotated.json.key)).list).toBe("fixed");
    const made = await gateway.send("POST", "/v1/keys", { bearer: recovery_secret, json: {} });
    expect((await charged(made.json.key)).list).toBe("partner");
  });
});

test("only operators name a list, and only one that there is", async () => {
  const { key, id, balance_id, recovery_secret } = await gateway.key(1);
  const refusals = await Promise.all([
    put(`/admin/balances/${balance_id}`, "nope"),
    put(`/admin/keys/${id}`, "nope"),
    gateway.admin("/admin/keys", { price_list: "nope" }),
    ...[key, recovery_secret].map((bearer) =>
      gateway.send("PATCH", `/v1/keys/${id}`, { bearer, json: { price_list: "partner" } }),
    ),
    gateway.send("POST", "/v1/keys", { bearer: recovery_secret, json: { price_list: "partner" } }),
  ]);
  for (const { status, json } of refusals)
    expect([status, json.error.code, json.error.param]).toEqual([400, "invalid_request", "price_list"]);
  expect(refusals[0]!.json.error.message).toContain("It has: partner, fixed.");
  expect((await put("/admin/balances/bal_none", "partner")).json.error.param).toBe("id");
  // Owners change other things of their balance.
  const own = { bearer: recovery_secret, json: { low_credit_usd: 1, price_list: "partner" } };
  await gateway.send("PATCH", "/v1/me", own);
  expect((await gateway.admin(`/admin/balances/${balance_id}`)).json.price_list).toBe(null);
});

test("a list that a new customer is made with is the balance's: keys that its owner makes are charged by it", async () => {
  const { json: made } = await gateway.admin("/admin/keys", { price_list: "partner" });
  expect(made).toMatchObject({ price_list: null, balance_price_list: "partner" });
  await gateway.admin("/admin/credits", {
    balance_id: made.balance_id,
    amount_usd: 1,
    idempotency_key: made.id,
  });
  expect((await gateway.admin(`/admin/balances/${made.balance_id}`)).json.price_list).toBe("partner");
  const own = await gateway.send("POST", "/v1/keys", { bearer: made.recovery_secret, json: {} });
  for (const key of [made.key, own.json.key]) expect((await charged(key)).list).toBe("partner");
  await put(`/admin/balances/${made.balance_id}`, null);
  for (const key of [made.key, own.json.key]) expect((await charged(key)).list).toBeUndefined();
  const plain = (await gateway.admin("/admin/keys", {})).json;
  expect(plain).toMatchObject({ price_list: null, balance_price_list: null });
});

test("a stream stays at the price of its admission, whatever changes meanwhile, and the next request has the new one", async () => {
  const { key, balance_id } = await gateway.key(1);
  await put(`/admin/balances/${balance_id}`, "partner");
  const { price_version: before } = (await gateway.send("GET", "/v1/catalog", { bearer: key })).json;
  held = gate();
  const streaming = charged(key, { stream: true });
  await arrived.passed;
  gateway.folder.configure(config(LISTS.replace("factor: 0.5", "factor: 0.25")));
  expect((await gateway.admin("/admin/reload", {})).status).toBe(200);
  const repriced = await charged(key);
  await put(`/admin/balances/${balance_id}`, "fixed");
  const moved = await charged(key);
  gateway.folder.configure(config("fixed: [{ model: '*', factor: 1 }]"));
  expect((await gateway.admin("/admin/reload", {})).status).toBe(200);
  held.open();
  const { cost, list, version } = await streaming;
  expect([cost, list, version]).toEqual([0.001, "partner", before]);
  expect([repriced.cost, repriced.list, moved.cost, moved.list]).toEqual([0.0005, "partner", 0.01, "fixed"]);
  expect(new Set([before, repriced.version, moved.version]).size).toBe(3);

  // A customer whose list is gone buys nothing until there is one again.
  await gateway.admin("/admin/ledger/audit");
  gateway.folder.configure(config("other: [{ model: '*', factor: 1 }]"));
  expect((await gateway.admin("/admin/reload", {})).status).toBe(200);
  const { status, json: refusal } = await gateway.chat(key);
  expect([status, refusal.error.code]).toEqual([503, "model_unavailable"]);
  expect(refusal.error.message).toContain("no longer has the price list of this key");
  await put(`/admin/balances/${balance_id}`, null);
  expect((await gateway.chat(key)).status).toBe(200);
  expect((await gateway.admin("/admin/ledger/audit")).json.ok).toBe(true);
});
