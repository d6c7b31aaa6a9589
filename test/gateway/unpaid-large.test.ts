import { afterAll, expect, test } from "bun:test";
import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib";
import { open } from "./open.ts";

/** Large requests of somebody without credit are read in a thread; they are answered as any others. */
const gateway = await open("log: off\n");
const key = (await gateway.key(0)).key;
afterAll(() => gateway.close());

const WORDS = "lorem ipsum ".repeat(12_000);
const messages = [{ role: "user", content: WORDS }];
const free = { model: "gateway/auto:free", messages, max_tokens: 100 };

test.each<[what: string, path: string, json: object, status: number, code: string | null]>([
  ["a paid model", "/v1/chat/completions", { model: "sim/echo", messages }, 402, "insufficient_credit"],
  ["no messages", "/v1/chat/completions", { ...free, messages: WORDS }, 400, "invalid_request"],
  ["no such model", "/v1/chat/completions", { ...free, model: "no/model" }, 404, "unknown_model"],
  ["overrides", "/v1/chat/completions", { ...free, models: ["a/b"] }, 400, "invalid_request"],
  ["long overrides", "/v1/chat/completions", { ...free, models: [WORDS] }, 400, "invalid_request"],
  ["a free model", "/v1/chat/completions", free, 200, null],
  ["a free model, on Messages", "/v1/messages", free, 200, null],
  [
    "a free model, on Responses",
    "/v1/responses",
    { model: free.model, input: WORDS, max_output_tokens: 100 },
    200,
    null,
  ],
  ["a count", "/v1/messages/count_tokens", { model: "sim/echo", messages }, 200, null],
  [
    "a count of nothing",
    "/v1/messages/count_tokens",
    { model: "sim/echo", messages: WORDS },
    400,
    "invalid_request",
  ],
  ["a compaction", "/v1/responses/compact", { model: "sim/echo", input: WORDS }, 402, "insufficient_credit"],
])("%s", async (_, path, json, status, code) => {
  const answer = await gateway.send("POST", path, { bearer: key, json });
  expect([answer.status, answer.json.error?.code]).toEqual([status, code ?? undefined]);
  if (path.endsWith("count_tokens") && status === 200)
    expect(answer.json.input_tokens).toBeWithin(24_000, 40_000);
});

test("the host gets all of a prompt that is served free", async () => {
  const end = `the end ${crypto.randomUUID()}`;
  const answer = await gateway.chat(key, {
    ...free,
    messages: [...messages, { role: "user", content: end }],
  });
  expect(answer.json.choices[0].message.content).toContain(end);
});

test.each(["gzip", "br", "zstd"] as const)("a request packed with %s", async (coding) => {
  const bytes = Buffer.from(JSON.stringify({ model: "sim/echo", messages }));
  const packed = { gzip: gzipSync, br: brotliCompressSync, zstd: zstdCompressSync }[coding](bytes);
  const headers = { "content-encoding": coding, "content-type": "application/json" };
  const { key } = await gateway.key(0);
  for (let round = 0; round < 3; round++) {
    const { status, json } = await gateway.send("POST", "/v1/chat/completions", {
      bearer: key,
      bytes: new Uint8Array(packed),
      headers,
    });
    expect([status, json.error.code]).toEqual([402, "insufficient_credit"]);
  }
});

test.each([10, 1_000, 70_000, 200_000])(
  "a request of no declared length, in parts of %i bytes",
  async (size) => {
    const bytes = Buffer.from(
      JSON.stringify({ model: "sim/echo", messages: [{ role: "user", content: "x".repeat(2 * size) }] }),
    );
    const { key } = await gateway.key(0);
    const parts = async function* () {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    };
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: parts() as unknown as BodyInit,
    });
    expect(answer.status).toBe(402);
  },
);

test("a receipt names the model that was asked for", async () => {
  const { headers } = await gateway.chat(key, { ...free, model: "no/model" });
  const receipt = await gateway.receipt({ headers }, key);
  expect(receipt.json).toMatchObject({ state: "refused", model_requested: "no/model" });
});
