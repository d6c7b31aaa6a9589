import { afterAll, expect, test } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { open } from "./open.ts";

/**
 * A host that keeps 1,000 tokens of a prompt, 600 of them for an hour, and says so in Anthropic's words or
 * without the split.
 */
let isSplit = true;
const host = await startFakeHost(() =>
  json({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content: [{ type: "text", text: "Yes." }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: {
      input_tokens: 10,
      cache_read_input_tokens: 0,
      cache_creation_input_tokens: 1_000,
      ...(isSplit && { cache_creation: { ephemeral_5m_input_tokens: 400, ephemeral_1h_input_tokens: 600 } }),
      output_tokens: 2,
    },
  }),
);
const gateway = await open(`
hosts: [{ id: a, base_url: "${host.url}/v1", speaks: [messages] }]
models:
  - id: test/model
    context_length: 100000
    max_output_tokens: 4000
    price: { input: 1, output: 5, cache_read: 0.1, cache_write: 1.25 }
    routes: [{ host: a, model: m }]
`);
const mine = await gateway.key(1);
afterAll(() => closeAll(gateway, host));

async function receiptOf(cache_control: object) {
  const text = { type: "text", text: "Hello. ".repeat(2_000), cache_control };
  const body = { model: "test/model", max_tokens: 10, messages: [{ role: "user", content: [text] }] };
  const answer = await gateway.send("POST", "/v1/messages", { bearer: mine.key, json: body });
  expect(answer.status).toBe(200);
  return (await gateway.receipt(answer, mine.key)).json;
}

/** Input, answer, and what was kept for five minutes and for an hour, in millionths of a dollar. */
const cost = (short: number, long: number) => (10 + 2 * 5 + short * 1.25 + long * 2) / 1e6;

test("what a host keeps for an hour costs twice the input, as its receipt shows", async () => {
  isSplit = true;
  const { tokens, price, cost_usd } = await receiptOf({ type: "ephemeral", ttl: "1h" });
  expect(tokens).toMatchObject({ input: 10, cache_write: 1_000, cache_write_1h: 600 });
  expect(price).toMatchObject({ cache_write: 1.25, cache_write_1h: 2 });
  expect(cost_usd).toBeCloseTo(cost(400, 600), 9);
});

test("where the host does not say how much of it, all of it does, if that was asked for", async () => {
  isSplit = false;
  expect((await receiptOf({ type: "ephemeral", ttl: "1h" })).cost_usd).toBeCloseTo(cost(0, 1_000), 9);
  const { tokens, cost_usd } = await receiptOf({ type: "ephemeral" });
  expect(cost_usd).toBeCloseTo(cost(1_000, 0), 9);
  expect(tokens.cache_write_1h).toBeUndefined();
});

test("a request that asks for an hour holds the more expensive price, and no other does", async () => {
  const long = (await receiptOf({ type: "ephemeral", ttl: "1h" })).held_usd;
  const short = (await receiptOf({ type: "ephemeral" })).held_usd;
  expect(long / short).toBeGreaterThan(1.55);
  expect((await receiptOf({ type: "ephemeral", ttl: "5m" })).held_usd / short).toBeLessThan(1.01);
});
