import { afterAll, expect, test } from "bun:test";
import { sse } from "../fakes/behaviours.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { startFakeHost } from "../fakes/host.ts";
import { messagesText, responsesText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { open } from "./open.ts";

/** Codex offers a web search in every request, which no host here is sent. */
let claims: { input?: number } = {};
let begins: Gate<void> = gate();
const host = await startFakeHost(({ path }) => {
  const answer = path.endsWith("/messages") ? messagesText : responsesText;
  return sse(answer(["Done"], claims).events, { before: (n) => (n === 0 ? begins.passed : undefined) });
});
const model = (id: string, at: string) => `
  - id: test/${id}
    context_length: 400000
    max_output_tokens: 64000
    price: { input: 1, output: 4, cache_read: 0.1, cache_write: 1.25 }
    routes: [{ host: ${at}, model: m }]`;
const gateway = await open(`
hosts:
  - { id: responses, base_url: "${host.url}/v1", speaks: [responses] }
  - { id: messages, base_url: "${host.url}/v1", speaks: [messages] }
models: ${model("on-responses", "responses")}${model("on-messages", "messages")}
`);
afterAll(async () => {
  begins.open();
  await gateway.close();
  await host.close();
});

const TOOL = { type: "function", name: "look", parameters: { type: "object" }, strict: false };
const SEARCH = { type: "web_search", external_web_access: true };
const MODELS = ["test/on-responses", "test/on-messages"];

const send = (bearer: string, json: object) =>
  gateway.send("POST", "/v1/responses", { bearer, json: { stream: true, store: false, ...json } });

test.each(MODELS)("ten Codex begin at once on %s under $5 a day", async (id) => {
  begins = gate();
  const { key } = await gateway.key(20, { daily_limit_usd: 5 });
  const before = host.requests.length;
  const refused: string[] = [];
  const replies = Array.from({ length: 10 }, async () => {
    const reply = await send(key, { model: id, input: "word ".repeat(8_000), tools: [TOOL, SEARCH] });
    if (reply.status !== 200) refused.push(reply.text);
    return reply;
  });
  await until(() => host.requests.length - before + refused.length === 10);
  expect(refused).toEqual([]);
  begins.open();
  for (const reply of await Promise.all(replies))
    expect(reply.headers.get("x-gateway-omitted")).toContain("tools[].web_search");
});

test.each(MODELS)("on %s, it holds and is billed as if the search had not been offered", async (id) => {
  begins.open();
  const { key, recovery_secret: bearer } = await gateway.key(1);
  const receipts = async (tools: object[], usage: typeof claims) => {
    claims = usage;
    const reply = await send(key, { model: id, input: "hi", tools, max_output_tokens: 100 });
    claims = {};
    const { held_usd, cost_usd, tokens } = (await gateway.receipt(reply, bearer)).json;
    return { held_usd, cost_usd, tokens };
  };
  for (const usage of [{}, { input: 390_000 }, { input: 5_000_000 }]) {
    const offered = await receipts([TOOL, SEARCH], usage);
    expect(offered).toEqual(await receipts([TOOL], usage));
    expect(offered.tokens.input).toBeLessThan(100);
  }
});

test.each(MODELS)("on %s, little credit is enough", async (id) => {
  begins.open();
  const { key } = await gateway.key(0.2);
  expect((await send(key, { model: id, input: "word ".repeat(1_000), tools: [SEARCH] })).status).toBe(200);
});
