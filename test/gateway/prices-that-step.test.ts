import { afterAll, beforeEach, expect, test } from "bun:test";
import { sse } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { open } from "./open.ts";

/** A Messages host that reports so many tokens of a prompt at its start, and of an answer at its end. */
let prompt = 1_000;
let answer = 50;
const host = await startFakeHost(() => {
  const usage = { input_tokens: prompt, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
  const events = [
    {
      type: "message_start",
      message: {
        id: "m",
        type: "message",
        role: "assistant",
        model: "m",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { ...usage, output_tokens: 1 },
      },
    },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "word ".repeat(answer) } },
    { type: "content_block_stop", index: 0 },
    {
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: answer },
    },
    { type: "message_stop" },
  ];
  return sse(events.map((event) => ({ event: event.type, data: JSON.stringify(event) })));
});
const gateway = await open(`
hosts: [{ id: a, base_url: "${host.url}/v1", speaks: [messages] }]
models:
  - id: test/model
    context_length: 100000
    max_output_tokens: 1000
    price:
      input: 1
      output: 10
      cache_read: 0.1
      cache_write: 1.25
      above: [{ prompt: 2000, input: 2, output: 15, cache_read: 0.2, cache_write: 2.5 }]
    routes: [{ host: a, model: m }]
`);
afterAll(() => closeAll(gateway, host));
beforeEach(() => {
  prompt = 1_000;
  answer = 50;
});

/** Some 1,600 tokens, in 8,000 bytes. */
const TEXT = "word ".repeat(1_600);
const post = (bearer: string, more: object = {}) =>
  gateway.send("POST", "/v1/messages", {
    bearer,
    json: {
      model: "test/model",
      max_tokens: 1_000,
      stream: true,
      messages: [{ role: "user", content: TEXT }],
      ...more,
    },
  });

const cost = (input: number, output: number): number =>
  input > 2_000 ? (2 * input + 15 * output) / 1e6 : (input + 10 * output) / 1e6;

test.each([1_999, 2_000, 2_001, 2_500])(
  "a prompt of %d tokens costs the step that it reaches, the answer too",
  async (tokens) => {
    const { key } = await gateway.key(1);
    prompt = tokens;
    const reply = await post(key);
    const { json: receipt } = await gateway.receipt(reply, key);
    expect(receipt.tokens).toMatchObject({ input: tokens, output: answer });
    expect(receipt.cost_usd).toBeCloseTo(cost(tokens, answer), 9);
    expect(receipt.cost_usd).toBeLessThanOrEqual(receipt.held_usd);
    expect([receipt.price.input, receipt.price.above_prompt]).toEqual(
      tokens > 2_000 ? [2, 2_000] : [1, undefined],
    );
  },
);

test("60 streams that cross a step together under a cap: never over it, and each receipt is its tokens at its price", async () => {
  const cap = 0.1;
  const { key } = await gateway.key(1, { daily_limit_usd: cap });
  prompt = 2_400;
  const replies = await Promise.all(Array.from({ length: 60 }, () => post(key)));
  const served = replies.filter(({ status }) => status === 200);
  expect(served.length).toBeGreaterThan(3);
  expect(served.length).toBeLessThan(60);
  expect(replies.filter(({ status }) => status !== 200 && status !== 429)).toEqual([]);
  let spent = 0;
  for (const reply of served) {
    const { json: receipt } = await gateway.receipt(reply, key);
    const { input, output } = receipt.tokens;
    expect(receipt.cost_usd).toBeCloseTo(
      (receipt.price.input * input + receipt.price.output * output) / 1e6,
      8,
    );
    expect(receipt.cost_usd).toBeLessThanOrEqual(receipt.held_usd);
    spent += receipt.cost_usd;
  }
  expect(spent).toBeLessThanOrEqual(cap);
  expect((await gateway.admin("/admin/ledger/audit")).json.ok).toBe(true);
});

test("the catalogue and OpenRouter's list have the steps", async () => {
  const { key } = await gateway.key(1);
  const { json: catalog } = await gateway.send("GET", "/v1/catalog", { bearer: key });
  expect(catalog.data[0].price.above).toEqual([
    { prompt: 2_000, input: 2, output: 15, cache_read: 0.2, cache_write: 2.5, cache_write_1h: 4 },
  ]);
  const { json: model } = await gateway.send("GET", "/v1/models/test/model", { bearer: key });
  expect(model.pricing).toMatchObject({ prompt: "0.000001", input_cache_write_1h: "0.000002" });
  expect(model.pricing.overrides).toEqual([
    {
      min_prompt_tokens: 2_001,
      prompt: "0.000002",
      completion: "0.000015",
      input_cache_read: "0.0000002",
      input_cache_write: "0.0000025",
      input_cache_write_1h: "0.000004",
    },
  ]);
});
