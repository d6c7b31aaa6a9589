import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { json, sse } from "../fakes/behaviours.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { open } from "./open.ts";

/** What other customers' answers looked like must not size the holds of the next customer. */
const LONGEST = 64_000;
const pieces = (tokens: number, each: number): string[] =>
  Array.from({ length: Math.ceil(tokens / each) }, () => "word ".repeat(each));

let writes: readonly string[] = [];
let isSlow: boolean;
let goesOn: Gate<void>;
let claims: { output?: number; reasoning?: number } = {};
const host = await startFakeHost((request) => {
  const { events, whole } = chatText([...writes], claims);
  if (request.json().stream !== true) return json(whole);
  const before = isSlow ? (n: number) => (n === 2 ? goesOn.passed : undefined) : undefined;
  return sse(events, before === undefined ? {} : { before });
});
const gateway = await open(`
hosts: [{ id: h, base_url: "${host.url}/v1", speaks: [chat.completions] }]
models:
  - id: test/costly
    context_length: 200000
    max_output_tokens: ${LONGEST}
    price: { input: 5, output: 25 }
    routes: [{ host: h, model: costly }]
  - id: test/cheap
    context_length: 200000
    max_output_tokens: 32000
    price: { input: 1, output: 4 }
    routes: [{ host: h, model: cheap }]
`);
afterAll(async () => {
  goesOn.open();
  await gateway.close();
  await host.close();
});
beforeEach(() => {
  goesOn = gate();
});

/** Three customers are given these answers, twice, as fast as the network is. */
async function others(model: string, answers: readonly (readonly string[])[]): Promise<void> {
  isSlow = false;
  for (let customer = 0; customer < 3; customer++) {
    const { key } = await gateway.key(20);
    for (const answer of [...answers, ...answers]) {
      writes = answer;
      const { status } = await gateway.chat(key, { model, stream: true, max_tokens: 4_000 });
      expect(status).toBe(200);
    }
  }
  isSlow = true;
  writes = pieces(100, 2);
}

const ANSWERS: [string, string[][]][] = [
  ["none yet", []],
  ["tool calls: 30 tokens in three pieces at once", [pieces(30, 10)]],
  ["short answers in large pieces", [[...pieces(40, 40), ...pieces(10, 10)]]],
  ["a long answer at once", [pieces(3_000, 30)]],
  ["all of them in turn", [pieces(30, 10), pieces(50, 40), pieces(3_000, 30), pieces(3_000, 1_500)]],
];

test("answers in bursts are not shown as a speed of the host", async () => {
  await others("test/costly", [pieces(30, 10), pieces(3_000, 1_500)]);
  const { text } = await gateway.admin("/admin/hosts");
  expect(text).toContain('"tokens_per_second":null');
  expect(text).not.toMatch(/"tokens_per_second":\d/);
});

describe("twelve agents with a ceiling of 64,000 tokens begin at once under $5 a day", () => {
  test.each(ANSWERS)("after answers to others: %s", async (_, answers) => {
    await others("test/costly", answers);
    const { key } = await gateway.key(20);
    const before = host.requests.length;
    const statuses: number[] = [];
    const replies = Array.from({ length: 12 }, async () => {
      const reply = await gateway.chat(key, { model: "test/costly", stream: true, max_tokens: LONGEST });
      statuses.push(reply.status);
    });
    await until(() => host.requests.length - before + statuses.length === 12);
    expect(statuses).toEqual([]);
    goesOn.open();
    await Promise.all(replies);
    expect(statuses).toEqual(Array.from({ length: 12 }, () => 200));
  });
});

test.each(ANSWERS)(
  "a stream without a ceiling holds no more than its model's longest answer, after answers to others: %s",
  async (_, answers) => {
    await others("test/cheap", answers);
    const { key } = await gateway.key(1);
    const before = host.requests.length;
    const stream = { model: "test/cheap", stream: true, max_tokens: null };
    const replies = [1, 2, 3].map(() => gateway.chat(key, stream));
    await until(() => host.requests.length - before === 3);
    const { held_usd } = (await gateway.send("GET", "/v1/me", { bearer: key })).json;
    expect(held_usd).toBeLessThan(3 * ((32_000 * 4) / 1e6 + 0.001));
    isSlow = false;
    expect((await gateway.chat(key, { model: "test/cheap", max_tokens: 1_000 })).status).toBe(200);
    goesOn.open();
    for (const { status } of await Promise.all(replies)) expect(status).toBe(200);
  },
);

test.each([false, true])(
  "thoughts that a host claims beyond `max_tokens` are charged up to it, and are no loss of the operator's; streamed: %p",
  async (stream) => {
    isSlow = false;
    writes = pieces(60, 1);
    claims = { output: 30_000, reasoning: 29_940 };
    const { key, recovery_secret: bearer } = await gateway.key(5);
    const reply = await gateway.chat(key, { model: "test/cheap", stream, max_tokens: 200 });
    claims = {};
    expect(reply.status).toBe(200);
    const receipt = await gateway.receipt(reply, bearer);
    expect(receipt.json.tokens).toMatchObject({ output: 200, reasoning: 140 });
    expect((await gateway.admin("/admin/ledger/audit")).json.losses_nano).toBe("0");
  },
);
