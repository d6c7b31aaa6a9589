import { afterEach, describe, expect, test } from "bun:test";
import type { Key } from "../../src/customers/keys/key.ts";
import type { GenerationAnswer } from "../../src/generation/answer.ts";
import { PAID_MS_A_MINUTE } from "../../src/ledger/limits/count-allowance.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { json } from "../fakes/behaviours.ts";
import { ManualClock } from "../fakes/clock.ts";
import { type FakeHost, hostRow, startFakeHost } from "../fakes/host.ts";
import { until } from "../fakes/until.ts";
import {
  COUNTED_MS_PER_BYTE,
  openTestGateway,
  read,
  requestBody,
  type TestGateway,
  type TestGatewayOptions,
} from "./test-gateway.ts";

let host: FakeHost;
let gateway: TestGateway;
afterEach(async () => {
  await gateway.close();
  await host.close();
});

const REPLY = {
  id: "x",
  choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 10, completion_tokens: 1 },
};

async function open(options: TestGatewayOptions) {
  host = await startFakeHost(() => json(REPLY));
  gateway = await openTestGateway([hostRow(host)], options);
}

const send = (content: unknown) =>
  gateway.send(
    "chat.completions",
    requestBody("chat.completions", { messages: [{ role: "user", content }], max_tokens: 100 }),
  );

async function codeOf(answer: GenerationAnswer) {
  const text = await read(answer);
  return answer.status === 200 ? 200 : (JSON.parse(text).error.code as string);
}

const BYTES_A_MINUTE = PAID_MS_A_MINUTE / COUNTED_MS_PER_BYTE;
const THIRD = "x".repeat(BYTES_A_MINUTE / 3 - 10_000);
const PDF = `data:application/pdf;base64,${"QUJD".repeat(200_000)}`;
const withPdf = [
  { type: "text", text: "What is in it?" },
  { type: "file", file: { filename: "a.pdf", file_data: PDF } },
];
const NO_CREDIT = { creditUsd: 0.000001, model: { contextLength: 1_000_000_000 } };

test("without credit, so many prompts a minute are counted, and then the refusal says the bound", async () => {
  const clock = new ManualClock();
  await open({ ...NO_CREDIT, promptTokens: 1_000, countClock: clock });
  for (let n = 0; n < 3; n++)
    expect(await read(await send(THIRD))).toContain("whose worst case is $0.002875.");
  expect(gateway.counted).toHaveLength(3);
  const fourth = await read(await send(THIRD));
  expect(gateway.counted).toHaveLength(3);
  expect(fourth).toContain("insufficient_credit");
  expect(fourth).toContain("whose worst case is $0.82");
  expect(fourth).toContain("The prompt is estimated at one token per byte");
  clock.advance(61_000);
  expect(await read(await send(THIRD))).toContain("whose worst case is $0.002875.");
});

test("what is counted for requests that are served is not for nothing", async () => {
  await open({
    creditUsd: 0.1,
    model: { contextLength: 1_000_000_000 },
    promptTokens: 1_000,
    countClock: new ManualClock(),
  });
  for (let n = 1; n <= 4; n++) {
    expect(await codeOf(await send(THIRD))).toBe(200);
    expect(gateway.counted).toHaveLength(n);
  }
});

test("prompts that are too long are counted so many times a minute, and then left to the host", async () => {
  await open({ creditUsd: 1, countClock: new ManualClock(), promptTokens: 200_000 });
  for (let n = 0; n < 3; n++) expect(await codeOf(await send(THIRD))).toBe("context_too_long");
  expect([gateway.counted.length, host.requests.length]).toEqual([3, 0]);
  // Counted before, it would be refused like the others; now it is counted next to its request.
  expect(await codeOf(await send(THIRD))).toBe(200);
  expect(host.requests).toHaveLength(1);
});

describe("while a prompt is counted", () => {
  const changes: [string, Partial<Key> | null, number | string][] = [
    ["nothing happens to the key", {}, 200],
    ["the key is revoked", null, "invalid_api_key"],
    ["the key may no longer call the model", { allowedModels: ["test/other"] }, "invalid_request"],
    ["the key's daily cap is lowered", { dailyLimit: 1 as NanoUsd }, "budget_exhausted"],
    ["the key's monthly cap is lowered", { monthlyLimit: 1 as NanoUsd }, "budget_exhausted"],
    ["the key's tokens a minute are lowered", { tpmLimit: 1 }, "rate_limited"],
    ["the key's requests a minute are lowered to none", { rpmLimit: 0 }, "rate_limited"],
  ];
  test.each(changes)("%s: what counts is the key as it is then", async (_, change, answered) => {
    let counts = 0;
    // Neither its length nor its cost is certain by its bytes.
    await open({
      promptTokens: 10,
      creditUsd: 0.05,
      counting() {
        if (counts++ === 0) gateway.change(change);
      },
    });
    expect(await codeOf(await send("x".repeat(100_001)))).toBe(answered);
    expect(counts).toBe(1);
    expect(host.requests).toHaveLength(answered === 200 ? 1 : 0);
  });

  test("the key expires: the error says so", async () => {
    await open({
      promptTokens: 10,
      creditUsd: 0.05,
      async counting() {
        const expiresAt = (Date.now() + 1) as EpochMs;
        gateway.change({ expiresAt });
        await until(() => Date.now() > expiresAt);
      },
    });
    expect(await codeOf(await send("x".repeat(100_001)))).toBe("invalid_api_key");
  });

  test("a cap is raised: the request that it was too low for is served", async () => {
    await open({
      promptTokens: 10,
      key: { dailyLimit: 1 as NanoUsd },
      counting: () => gateway.change({ dailyLimit: null }),
    });
    expect(await codeOf(await send("x".repeat(9_000)))).toBe(200);
  });
});

test("a large request of who cannot pay is read once, although its key changes meanwhile", async () => {
  let readings = 0;
  await open({
    free: true,
    creditUsd: 0,
    readingUnpaid() {
      readings += 1;
      gateway.change({ dailyLimit: 1 as NanoUsd });
    },
  });
  const body = requestBody("chat.completions", { model: "test/model:free" });
  expect(await codeOf(await gateway.send("chat.completions", body))).toBe(200);
  expect(readings).toBe(1);
});

describe("without credit", () => {
  const NONE = { creditUsd: 0, promptTokens: 10, fileTokens: 10, countClock: new ManualClock() };
  const counting: [string, unknown, string[]][] = [
    [
      "a long prompt is counted, behind those with credit, in its network's turn",
      "x".repeat(300_000),
      ["text"],
    ],
    ["a larger one is not", "x".repeat(1_200_000), []],
    ["nor are files, however small", withPdf, ["text"]],
  ];
  test.each(counting)("%s", async (_, content, counted) => {
    await open({ ...NONE, model: { contextLength: 1_000_000_000 } });
    expect(await codeOf(await send(content))).toBe("insufficient_credit");
    expect<string[]>(gateway.counted).toEqual(counted);
    for (const { rank, key } of gateway.turns) expect([rank, key]).toEqual(["unpaid", ""]);
  });
});

test("with credit, balances take turns, and nobody waits longer than for a first token", async () => {
  await open({ creditUsd: 0.05, promptTokens: 10 });
  expect(await codeOf(await send("x".repeat(100_001)))).toBe(200);
  expect(gateway.turns).toMatchObject([{ rank: "paid", key: "bal_test", withinMs: 30_000 }]);
});

test.each<[string, TestGatewayOptions, unknown, string | number, string[]]>([
  ["short next to a large file: nothing", {}, withPdf, 200, []],
  [
    "short next to many images: nothing",
    {},
    Array(50).fill({ type: "image_url", image_url: { url: "https://a.b/c" } }),
    200,
    [],
  ],
  ["that may be too long: its text, once", { promptTokens: 10 }, "x".repeat(100_001), 200, ["text"]],
  [
    "that may be too long and too costly: its text, once",
    { promptTokens: 90_000, creditUsd: 0.05 },
    "x".repeat(100_001),
    "insufficient_credit",
    ["text"],
  ],
  [
    "whose files are too costly unread: its text and its files",
    { promptTokens: 10, fileTokens: 1_000, creditUsd: 0.05 },
    withPdf,
    200,
    ["text", "files"],
  ],
  [
    "that is large and has files: both, as the first of its minute",
    { promptTokens: 10, fileTokens: 1_000, creditUsd: 0.05 },
    [{ type: "text", text: "x".repeat(BYTES_A_MINUTE * 0.6) }, ...withPdf],
    200,
    ["text", "files"],
  ],
  [
    "to which the host adds what it fetches: nothing",
    { creditUsd: 0.05 },
    [{ type: "file", file: { file_id: "file-1" } }],
    "insufficient_credit",
    [],
  ],
])("of a prompt %s", async (_, options, content, outcome, counted) => {
  await open(options);
  expect(await codeOf(await send(content))).toBe(outcome);
  expect<string[]>(gateway.counted).toEqual(counted);
});
