import { afterAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/units/clock.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { type CacheUse, cachingHost, PromptCache } from "../fakes/prompt-cache.ts";
import { open } from "./open.ts";

/** Two hosts of Messages, each with a cache of its own, that share the requests by price. */
/** In the order of the requests. */
const uses: CacheUse[] = [];

const hosts = await Promise.all(
  [0, 1].map(() => startFakeHost(cachingHost(new PromptCache(systemClock), uses))),
);
const model = (id: string, more = "") => `
  - id: test/${id}
    context_length: 200000
    max_output_tokens: 4000
    price: { input: 1, output: 5, cache_read: 0.1, cache_write: 1.25 }
    ${more}
    routes: [{ host: h0, model: m }, { host: h1, model: m }]`;
const gateway = await open(`
hosts:
  - { id: h0, base_url: "${hosts[0]!.url}/v1", speaks: [messages], auto_cache: true }
  - { id: h1, base_url: "${hosts[1]!.url}/v1", speaks: [messages], auto_cache: true }
models: ${model("marked")}${model("plain", "auto_cache: false")}
routing: { order: price }
defaults: { accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null } }
`);
const mine = await gateway.key(50);
afterAll(() => closeAll(gateway, ...hosts));

const PREFIX_TOKENS = 20_000;
/** A text of that many tokens, by the fake host's count. */
const instructions = (topic: string) =>
  `${topic}. ${"Every word of this counts. ".repeat(PREFIX_TOKENS)}`.slice(0, PREFIX_TOKENS * 4);

type Message = { readonly role: string; readonly content: string };
const PATHS = {
  "/v1/messages": (system: string, messages: readonly Message[]) => ({ system, messages, max_tokens: 50 }),
  "/v1/chat/completions": (system: string, messages: readonly Message[]) => ({
    messages: [{ role: "system", content: system }, ...messages],
    max_tokens: 50,
  }),
  "/v1/responses": (system: string, messages: readonly Message[]) => ({
    instructions: system,
    input: messages,
    max_output_tokens: 50,
  }),
};

async function send(
  path: keyof typeof PATHS,
  topic: string,
  messages: readonly Message[],
  more: object = {},
) {
  const json = { model: "test/marked", ...PATHS[path](instructions(topic), messages), ...more };
  const reply = await gateway.send("POST", path, { bearer: mine.key, json });
  expect(reply.status).toBe(200);
  const receipt = `/v1/receipts/${reply.headers.get("x-gateway-receipt")}`;
  return { receipt: (await gateway.send("GET", receipt, { bearer: mine.key })).json, use: uses.at(-1)! };
}

/** Ten turns of a chat: what each of them read, and who answered. */
async function talk(path: keyof typeof PATHS, topic: string, more: object = {}) {
  const messages: Message[] = [];
  const turns: Awaited<ReturnType<typeof send>>[] = [];
  for (let turn = 0; turn < 10; turn++) {
    messages.push({ role: "user", content: `Question ${turn} about ${topic}?` });
    turns.push(await send(path, topic, messages, more));
    messages.push({ role: "assistant", content: "Fine." });
  }
  return turns;
}

describe("a chat of ten turns with a prefix of 20,000 tokens", () => {
  const paths = Object.keys(PATHS) as (keyof typeof PATHS)[];
  for (const path of paths)
    for (const stream of [false, true]) {
      test(`${path}${stream ? ", streamed" : ""}: from the second turn on it is read from the cache, at one host`, async () => {
        const [first, ...others] = await talk(path, `${path} ${stream}`, { stream });
        expect(first!.use.written).toBeGreaterThanOrEqual(PREFIX_TOKENS);
        for (const { use, receipt } of others) {
          expect(use.read / (use.read + use.written + use.rest)).toBeGreaterThan(0.99);
          expect(receipt.host).toBe(first!.receipt.host);
          expect(receipt.tokens).toMatchObject({ cache_read: use.read, cache_write: use.written });
        }
      });
    }

  test("what is written is charged at the price of writes, what is read at that of reads", async () => {
    const [first, second] = await talk("/v1/messages", "money");
    for (const { use, receipt } of [first!, second!]) {
      const usd = (use.rest * 1 + use.read * 0.1 + use.written * 1.25 + receipt.tokens.output * 5) / 1e6;
      expect(receipt.cost_usd).toBeCloseTo(usd, 9);
      expect(receipt.held_usd).toBeGreaterThanOrEqual(receipt.cost_usd);
    }
    expect(second!.receipt.cost_usd).toBeLessThan(first!.receipt.cost_usd / 9);
  });

  test("many conversations with the same instructions find these at each host", async () => {
    const found = new Map<string, number>();
    for (let number = 0; number < 24; number++) {
      const { use, receipt } = await send("/v1/chat/completions", "shared", [
        { role: "user", content: `Number ${number}` },
      ]);
      const before = found.get(receipt.host) ?? 0;
      if (before > 0) expect(use.read).toBeGreaterThanOrEqual(PREFIX_TOKENS);
      found.set(receipt.host, before + 1);
    }
    expect(found.size).toBe(2);
  });
});

describe("nothing is marked", () => {
  const sent = (words: string) =>
    hosts.flatMap(({ requests }) => requests).find((request) => request.text().includes(words))!;
  const question = [{ role: "user", content: "Why?" }];
  const table: [string, object][] = [
    ["where the model says so", { model: "test/plain" }],
    ["where the request says so", { auto_cache: false }],
  ];
  test.each(table)("%s", async (name, more) => {
    const { use } = await send("/v1/messages", name, question, more);
    expect([use.read, use.written]).toEqual([0, 0]);
  });
  test("of a short prompt", async () => {
    const json = { model: "test/marked", max_tokens: 50, messages: [{ role: "user", content: "In short?" }] };
    await gateway.send("POST", "/v1/messages", { bearer: mine.key, json });
    expect(sent("In short?").json()).toEqual({ ...json, model: "m" });
  });
  test("next to a client's own mark", async () => {
    const content = [{ type: "text", text: "Why? ".repeat(1_000), cache_control: { type: "ephemeral" } }];
    const json = {
      model: "test/marked",
      max_tokens: 50,
      system: "Be brief.",
      messages: [{ role: "user", content }],
    };
    await gateway.send("POST", "/v1/messages", { bearer: mine.key, json });
    expect(sent("Why? Why?").json()).toEqual({ ...json, model: "m" });
  });
});

test("a request asks for marks where the operator does not; hosts do not see how", async () => {
  for (const path of Object.keys(PATHS) as (keyof typeof PATHS)[]) {
    const { use } = await send(path, `asked ${path}`, [{ role: "user", content: "Why?" }], {
      model: "test/plain",
      auto_cache: true,
    });
    expect(use.written).toBeGreaterThanOrEqual(PREFIX_TOKENS);
  }
  for (const { requests } of hosts)
    for (const request of requests) expect(request.text()).not.toContain("auto_cache");
});

test("anything but true and false is refused by name", async () => {
  const json = { model: "test/marked", messages: [{ role: "user", content: "a" }], auto_cache: "yes" };
  const reply = await gateway.send("POST", "/v1/chat/completions", { bearer: mine.key, json });
  expect(reply.json.error).toMatchObject({ code: "invalid_request", param: "auto_cache" });
});
