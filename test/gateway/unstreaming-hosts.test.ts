import { afterAll, beforeAll, expect, test } from "bun:test";
import { type OpenGateway, open } from "./open.ts";

/** Answers whole, whatever it is asked for. */
const host = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: () =>
    Response.json({
      id: "chatcmpl-1",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [{ index: 0, message: { role: "assistant", content: "Whole." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
    }),
});

const served = (id: string, by: string): string => `
  - id: test/${id}
    context_length: 1000
    max_output_tokens: 100
    price: { input: 1, output: 2 }
    routes: [${by}]`;

let gateway: OpenGateway;
let key = "";
beforeAll(async () => {
  const row = `base_url: "http://127.0.0.1:${host.port}/v1", speaks: [chat.completions]`;
  gateway = await open(`
hosts:
  - { id: said, ${row}, quirks: { no_stream: true } }
  - { id: unsaid, ${row} }
models:${served("said", "{ host: said, model: m }")}${served("unsaid", "{ host: unsaid, model: m }")}${served("both", "{ host: said, model: m }, { host: sim, model: echo }")}
`);
  key = (await gateway.key(5)).key;
});
afterAll(async () => {
  await gateway.close();
  await host.stop(true);
});

const ask = (model: string, stream: boolean) =>
  gateway.send("POST", "/v1/chat/completions", {
    bearer: key,
    json: { model, stream, messages: [{ role: "user", content: "Hi" }] },
  });

test("a host that cannot stream serves unstreamed requests", async () => {
  const { status, json } = await ask("test/said", false);
  expect([status, json.choices[0].message.content]).toEqual([200, "Whole."]);
});

test("a streamed request that only such hosts could serve is refused by its field, and none is asked", async () => {
  const { status, json, headers } = await ask("test/said", true);
  expect([status, json.error.code, json.error.param]).toEqual([400, "invalid_request", "stream"]);
  expect(json.error.message).toStartWith("No host of test/said can stream.");
  const receipt = await gateway.send("GET", `/v1/receipts/${headers.get("x-gateway-receipt")}`, {
    bearer: key,
  });
  expect(receipt.json.attempts).toEqual([]);
});

test("a host of the model that streams serves it in their place", async () => {
  const { status, text } = await ask("test/both", true);
  expect([status, text.endsWith("data: [DONE]\n\n")]).toEqual([200, true]);
});

test("of a host that is not said to be one, the receipt tells that it answered with JSON", async () => {
  const { status, headers } = await ask("test/unsaid", true);
  expect(status).toBe(503);
  const receipt = await gateway.send("GET", `/v1/receipts/${headers.get("x-gateway-receipt")}`, {
    bearer: key,
  });
  expect(receipt.json.attempts[0].detail).toBe("it answered with JSON and not with a stream");
});
