import { afterAll, expect, test } from "bun:test";
import { countTokens } from "gpt-tokenizer/encoding/cl100k_base";
import { sse } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { open } from "./open.ts";

/** The counting thread of the gateway, as it is wired: streams that end without a word of their tokens. */
let words: string[] = [];
const host = await startFakeHost(
  () => (wire, request) => sse(chatText(words).events.slice(0, -3))(wire, request),
);
const model = (id: string) => `
  - id: ${id}
    context_length: 100000
    max_output_tokens: 4000
    price: { input: 1, output: 10 }
    routes: [{ host: a, model: m }]`;
const gateway = await open(`
hosts: [{ id: a, base_url: "${host.url}/v1", speaks: [chat.completions] }]
models:${["openai/gpt-5", "openai/gpt-4-turbo", "other/model"].map(model).join("")}
`);
afterAll(() => closeAll(gateway, host));

async function receiptOf(model: string, texts: string[]) {
  words = texts;
  const { key } = await gateway.key(10);
  const { headers } = await gateway.chat(key, { model, max_tokens: 1_000, stream: true });
  const path = `/v1/receipts/${headers.get("x-gateway-receipt")}`;
  const { json } = await gateway.send("GET", path, { bearer: key });
  return json;
}

const GREEK = ["Η γρήγορη ", "καφέ αλεπού ", "πηδάει πάνω ", "από το ", "τεμπέλικο σκυλί."];
const greek = Array.from({ length: 8 }, () => GREEK).flat();

test.each<[string, string, string[], number]>([
  ["ninety times “ a” are ninety tokens, and are charged", "other/model", Array(90).fill(" a"), 90],
  [
    "a model before GPT-4o is counted in its own vocabulary",
    "openai/gpt-4-turbo",
    greek,
    countTokens(greek.join("")),
  ],
])("%s", async (_, model, texts, output) => {
  expect(await receiptOf(model, texts)).toMatchObject({
    state: "settled",
    error_code: "upstream_error",
    tokens: { input: 8, output, source: "counted" },
    cost_usd: (8 * 1_000 + output * 10_000) / 1e9,
  });
});

test("the same text has fewer tokens for a later one", async () => {
  const [before, after] = [
    await receiptOf("openai/gpt-4-turbo", greek),
    await receiptOf("openai/gpt-5", greek),
  ];
  expect(after.tokens.output).toBeLessThan(before.tokens.output);
});
