import { afterAll, describe, expect, test } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { open } from "./open.ts";

/**
 * A host that takes 1,000 tokens of prompt, and tells in OpenAI's words how many of them were sound, or does
 * not.
 */
let details: object = {};
const host = await startFakeHost(() =>
  json({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content: "Yes." }, finish_reason: "stop" }],
    usage: { prompt_tokens: 1_000, completion_tokens: 2, total_tokens: 1_002, ...details },
  }),
);
const model = (id: string, price: string) => `
  - id: test/${id}
    context_length: 100000
    max_output_tokens: 4000
    price: { ${price} }
    routes: [{ host: a, model: m }]`;
const gateway = await open(`
hosts: [{ id: a, base_url: "${host.url}/v1", speaks: [chat.completions] }]
models:${model("listens", "input: 2, output: 5, cache_read: 1, audio_input: 40, audio_output: 80")}${model("plain", "input: 2, output: 5")}
`);
const mine = await gateway.key(10);
afterAll(() => closeAll(gateway, host));

const SOUND = { type: "input_audio", input_audio: { data: `UklGR${"A".repeat(4_000)}`, format: "wav" } };
const TEXT = { type: "text", text: "w".repeat(400) };

async function receiptOf(content: object[], model = "listens", more: object = {}) {
  const messages = [{ role: "user", content }];
  const answer = await gateway.chat(mine.key, {
    model: `test/${model}`,
    max_tokens: 1_000,
    messages,
    ...more,
  });
  expect(answer.status).toBe(200);
  return (await gateway.receipt(answer, mine.key)).json;
}

/** In millionths of a dollar. */
const cost = (text: number, audio: number, cached = 0) => (text * 2 + audio * 40 + cached + 2 * 5) / 1e6;
const audioUsage = (audio_tokens: number, cached_tokens = 0) => ({
  prompt_tokens_details: { audio_tokens, cached_tokens },
});

test("the audio tokens that the host reports cost the price of audio, as the receipt shows", async () => {
  details = audioUsage(800);
  const { tokens, price, cost_usd } = await receiptOf([TEXT, SOUND]);
  expect(tokens).toMatchObject({ input: 1_000, audio_input: 800 });
  expect(price).toMatchObject({ input: 2, audio_input: 40 });
  expect(cost_usd).toBeCloseTo(cost(200, 800), 9);
});

test("tokens read from the cache do not count as audio", async () => {
  details = audioUsage(800, 900);
  const { tokens, cost_usd } = await receiptOf([TEXT, SOUND]);
  expect(tokens).toMatchObject({ input: 100, cache_read: 900, audio_input: 100 });
  expect(cost_usd).toBeCloseTo(cost(0, 100, 900), 9);
});

test("where the host does not say, what exceeds the text of the prompt counts as audio", async () => {
  details = {};
  const { tokens } = await receiptOf([TEXT, SOUND]);
  expect(tokens.audio_input).toBeGreaterThan(700);
  expect(tokens.audio_input).toBeLessThan(950);
  expect((await receiptOf([TEXT])).tokens.audio_input).toBeUndefined();
});

test("a request with sound holds the price of audio, and no other does", async () => {
  details = audioUsage(800);
  const short = { max_tokens: 10 };
  const loud = await receiptOf([TEXT, SOUND], "listens", short);
  const plain = await receiptOf([TEXT, SOUND], "plain", short);
  expect(loud.held_usd / plain.held_usd).toBeGreaterThan(15);
  const [silent, text] = [await receiptOf([TEXT]), await receiptOf([TEXT], "plain")];
  expect(silent.held_usd / text.held_usd).toBeLessThan(1.05);
  // Whatever the host says: there was nothing to hear.
  expect(silent.cost_usd).toBeCloseTo(cost(1_000, 0), 9);
});

test("a model without a price of audio charges it as text", async () => {
  details = audioUsage(800);
  const { price, cost_usd } = await receiptOf([TEXT, SOUND], "plain");
  expect(price.audio_input).toBe(2);
  expect(cost_usd).toBeCloseTo(cost(1_000, 0), 9);
});

test("the catalog names the price", async () => {
  const { data } = (await gateway.send("GET", "/v1/catalog", { bearer: mine.key })).json;
  const prices = data.map(({ price }: { price: { audio_input?: number } }) => price.audio_input);
  expect(prices).toEqual([40, undefined]);
});

describe("an answer in sound", () => {
  const SPOKEN = { modalities: ["text", "audio"], audio: { voice: "alloy", format: "wav" } };
  const outputAudio = (audio_tokens: number) => ({
    completion_tokens: 500,
    completion_tokens_details: { audio_tokens },
  });

  test("costs the price of audio for what the host says that it spoke", async () => {
    details = outputAudio(400);
    const { tokens, price, cost_usd } = await receiptOf([TEXT], "listens", SPOKEN);
    expect(tokens).toMatchObject({ output: 500, audio_output: 400 });
    expect(price).toMatchObject({ output: 5, audio_output: 80 });
    expect(cost_usd).toBeCloseTo((1_000 * 2 + 100 * 5 + 400 * 80) / 1e6, 9);
  });

  test("is believed, and held at its price, only where it was asked for", async () => {
    details = outputAudio(400);
    const [spoken, written] = [await receiptOf([TEXT], "listens", SPOKEN), await receiptOf([TEXT])];
    expect(written.tokens.audio_output).toBeUndefined();
    expect(written.cost_usd).toBeCloseTo((1_000 * 2 + 500 * 5) / 1e6, 9);
    expect(spoken.held_usd).toBeGreaterThan((1_000 * 80) / 1e6);
    expect(written.held_usd).toBeLessThan((1_000 * 10) / 1e6);
  });
});
