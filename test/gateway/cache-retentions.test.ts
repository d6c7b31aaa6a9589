import { afterAll, expect, test } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { open } from "./open.ts";

/** A Responses host whose prompts have 10,000 tokens, of which it writes 8,000 to its cache. */
let details: object | null = null;
const host = await startFakeHost(() =>
  json({
    id: "resp_1",
    object: "response",
    created_at: 1,
    status: "completed",
    model: "m",
    output: [
      {
        type: "message",
        id: "msg_1",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: "Yes.", annotations: [] }],
      },
    ],
    usage: {
      input_tokens: 10_000,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 8_000, ...details },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 10_005,
    },
  }),
);
const row = (id: string, price: string, hosts = ["a"]) => `
  - id: ${id}
    context_length: 100000
    max_output_tokens: 4000
    price: ${price}
    routes: [${hosts.map((name) => `{ host: ${name}, model: m }`).join(", ")}]`;
const gateway = await open(`
hosts:
  - { id: a, base_url: "${host.url}/v1", speaks: [responses] }
  - { id: marks, base_url: "${host.url}/v1", speaks: [responses], quirks: { cache_marks: true } }
models:${row("test/half-day", '{ input: 10, output: 20, cache_read: 1, cache_write: { "30m": 12.5, "12h": 25 } }')}
${row("test/marks", '{ input: 10, output: 20, cache_read: 1, cache_write: { "30m": 12.5, "12h": 25 } }', ["marks"])}
${row("test/marks-half-hour", '{ input: 10, output: 20, cache_read: 1, cache_write: { "30m": 12.5 } }', ["marks"])}
${row("test/plain", "{ input: 10, output: 20, cache_read: 1, cache_write: 12.5 }")}
`);
const mine = await gateway.key(10);
afterAll(() => closeAll(gateway, host));

const post = (model: string, more: object) =>
  gateway.send("POST", "/v1/responses", {
    bearer: mine.key,
    json: { model, input: "Hello. ".repeat(4_000), max_output_tokens: 10, ...more },
  });

async function receiptOf(more: object) {
  const answer = await post("test/half-day", more);
  expect(answer.status).toBe(200);
  return (await gateway.receipt(answer, mine.key)).json;
}

const HALF_DAY = { prompt_cache_options: { ttl: "12h" } };
const reported = (written: number, kept: number) => ({
  cache_write_tokens_details: { ttl_30m_tokens: written - kept, ttl_12h_tokens: kept },
});
/** In USD: 2,000 tokens of plain input, the writes of both retentions, and the answer. */
const cost = (short: number, long: number) => (2_000 * 10 + short * 12.5 + long * 25 + 5 * 20) / 1e6;

test.each<[string, object, object | null, number, number]>([
  ["half an hour, the default", {}, reported(8_000, 0), 8_000, 0],
  ["twelve hours", HALF_DAY, reported(8_000, 8_000), 0, 8_000],
  ["both", HALF_DAY, reported(8_000, 3_000), 5_000, 3_000],
  ["twelve hours, and the host does not report for how long", HALF_DAY, null, 0, 8_000],
  ["nothing of it, and the host reports twelve hours all the same", {}, reported(8_000, 8_000), 0, 8_000],
])("a request for %s is charged by retention, as its receipt shows", async (_, more, report, short, long) => {
  details = report;
  const { tokens, price, cost_usd, held_usd } = await receiptOf(more);
  expect(cost_usd).toBeCloseTo(cost(short, long), 9);
  expect(cost_usd).toBeLessThanOrEqual(held_usd);
  expect(tokens).toMatchObject({ input: 2_000, cache_write: 8_000 });
  expect([tokens.cache_write_12h ?? 0, price.cache_write_12h ?? 25]).toEqual([long, 25]);
});

test.each([
  ["test/marks", "12h", 0, 8_000],
  ["test/marks-half-hour", undefined, 8_000, 0],
])(
  "a chat client's mark of twelve hours reaches %s of another language as one of %p, and is charged so",
  async (model, ttl, short, long) => {
    details = reported(8_000, long);
    const text = { type: "text", text: "Hello. ".repeat(4_000) };
    const mark = { prompt_cache_breakpoint: { mode: "explicit", ttl: "12h" } };
    const answer = await gateway.send("POST", "/v1/chat/completions", {
      bearer: mine.key,
      json: { model, max_tokens: 10, messages: [{ role: "user", content: [{ ...text, ...mark }] }] },
    });
    expect(answer.status).toBe(200);
    const sent = host.requests.at(-1)!.json();
    expect(sent.input[0].content[0].prompt_cache_breakpoint).toEqual({
      mode: "explicit",
      ...(ttl && { ttl }),
    });
    const { cost_usd, held_usd } = (await gateway.receipt(answer, mine.key)).json;
    expect(cost_usd).toBeCloseTo(cost(short, long), 9);
    expect(cost_usd).toBeLessThanOrEqual(held_usd);
  },
);

test("a request holds the most expensive retention that it names", async () => {
  details = null;
  const { held_usd: short } = await receiptOf({});
  const { held_usd: long } = await receiptOf(HALF_DAY);
  expect(long / short).toBeGreaterThan(1.9);
});

test.each([
  ["prompt_cache_options.ttl", HALF_DAY],
  [
    "input[0].content[0].prompt_cache_breakpoint.ttl",
    {
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "Hi", prompt_cache_breakpoint: { mode: "explicit", ttl: "12h" } },
          ],
        },
      ],
    },
  ],
])("a model without a price for it refuses %s before any host is asked", async (param, more) => {
  const before = host.requests.length;
  const { status, json: answer } = await post("test/plain", more);
  expect([status, answer.error.code, answer.error.param]).toEqual([400, "invalid_request", param]);
  expect(answer.error.message).toContain("use one of 5m, 30m, 1h, or leave it out");
  expect(host.requests.length).toBe(before);
});

test("the catalogue lists each retention that has a price", async () => {
  const { json: list } = await gateway.send("GET", "/v1/catalog", { bearer: mine.key });
  const priceOf = (id: string) => list.data.find((one: { id: string }) => one.id === id).price;
  expect(priceOf("test/half-day")).toEqual({
    input: 10,
    output: 20,
    cache_read: 1,
    cache_write: 12.5,
    cache_write_30m: 12.5,
    cache_write_12h: 25,
  });
  expect(priceOf("test/plain")).toEqual({
    input: 10,
    output: 20,
    cache_read: 1,
    cache_write: 12.5,
    cache_write_1h: 20,
  });
});
