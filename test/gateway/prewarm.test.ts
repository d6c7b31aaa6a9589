import { afterAll, expect, test } from "bun:test";
import { json, sse } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { responsesText } from "../fakes/transcripts.ts";
import { open } from "./open.ts";

/** A host that writes 5,000 tokens of a prompt into its cache and answers nothing, as asked (OpenAI, `prewarm`). */
const host = await startFakeHost((request) => {
  const { whole } = responsesText([]);
  const usage = {
    input_tokens: 5_010,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 5_000 },
    output_tokens: 0,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 5_010,
  };
  const response = { ...whole, output: [], usage };
  if (request.json().stream !== true) return json(response);
  const event = (type: string, sequence_number: number, inner: object) => ({
    event: type,
    data: JSON.stringify({ type, sequence_number, response: inner }),
  });
  return sse([
    event("response.created", 0, { ...response, status: "in_progress", usage: null }),
    event("response.completed", 1, response),
  ]);
});
const gateway = await open(`
hosts: [{ id: a, base_url: "${host.url}/v1", speaks: [responses], quirks: { cache_marks: true } }]
models:
  - id: test/model
    context_length: 100000
    max_output_tokens: 4000
    price: { input: 1, output: 5, cache_read: 0.1, cache_write: 1.25 }
    routes: [{ host: a, model: m }]
`);
const mine = await gateway.key(1);
afterAll(() => closeAll(gateway, host));

test.each([
  ["prewarm, whole", { prompt_cache_options: { prewarm: true } }],
  ["prewarm, streamed", { prompt_cache_options: { prewarm: true }, stream: true }],
  ["generate: false, streamed", { generate: false, stream: true }],
])("%s: what the host writes into its cache is charged, and nothing else", async (_, more) => {
  const body = { model: "test/model", input: "Hello. ".repeat(2_500), ...more };
  const answer = await gateway.send("POST", "/v1/responses", { bearer: mine.key, json: body });
  expect(answer.status).toBe(200);
  expect(host.requests.at(-1)!.json()).toMatchObject(more);
  const receipt = (await gateway.receipt(answer, mine.key)).json;
  expect(receipt).toMatchObject({
    state: "settled",
    tokens: { input: 10, cache_write: 5_000, output: 0 },
  });
  expect(receipt.cost_usd).toBeCloseTo((10 + 5_000 * 1.25) / 1e6, 9);
  expect(receipt.attempts).toHaveLength(1);
});
