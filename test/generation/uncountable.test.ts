import { afterEach, expect, test } from "bun:test";
import { PromptCount, type PromptCountDeps } from "../../src/generation/prompt-count.ts";
import { CountAllowance } from "../../src/ledger/limits/count-allowance.ts";
import type { GenerationRequest } from "../../src/surfaces/surface.ts";
import type { BalanceId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { sse } from "../fakes/behaviours.ts";
import { ManualClock } from "../fakes/clock.ts";
import { type FakeHost, hostRow, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { openTestGateway, read, requestBody, type TestGateway } from "./test-gateway.ts";

let host: FakeHost | null = null;
let gateway: TestGateway | null = null;
afterEach(async () => {
  await gateway?.close();
  await host?.close();
  gateway = host = null;
});

const fails = () => Promise.reject(new Error("the thread cannot be opened"));

test("what was delivered is billed by its estimate where counting it fails", async () => {
  // No usage, and so many words that a broken answer is charged.
  const events = chatText(Array(100).fill("word ")).events.slice(0, -3);
  host = await startFakeHost(() => sse(events));
  gateway = await openTestGateway([hostRow(host)], { countingAnswer: fails });
  const answer = await gateway.send("chat.completions", requestBody("chat.completions", { stream: true }));
  expect(await read(answer)).toContain("upstream_error");
  const receipt = gateway.receipt(answer);
  expect(receipt).toMatchObject({ state: "settled", error_code: "upstream_error" });
  expect(receipt.tokens.output).toBeGreaterThan(90);
  expect(receipt.cost_usd).toBeGreaterThan(0);
});

test("a prompt that cannot be counted in time is not counted again, however often its request is looked at", async () => {
  let counts = 0;
  const deps: Partial<PromptCountDeps> = {
    async count() {
      counts += 1;
      return null;
    },
    allowance: new CountAllowance(new ManualClock()),
    credit: () => 0 as NanoUsd,
  };
  const request = { body: new Uint8Array(10), promptUnseen: false } as GenerationRequest;
  const call = { blocks: () => [], signal: new AbortController().signal };
  const prompt = new PromptCount(request, "bal_1" as BalanceId, deps as PromptCountDeps, call, 1_000);
  expect([await prompt.most(), await prompt.most(), counts]).toEqual([null, null, 1]);
});

test("a prompt that was counted before its admission is not counted again", async () => {
  let counts = 0;
  const deps: Partial<PromptCountDeps> = {
    count: async () => ({ tokens: ++counts, ms: 1 }),
    allowance: new CountAllowance(new ManualClock()),
    later: { mayTake: () => true, take() {}, giveBack() {} } as unknown as PromptCountDeps["later"],
    credit: () => 1 as NanoUsd,
  };
  const request = {
    body: new Uint8Array(10),
    promptUnseen: false,
    promptHasFiles: false,
  } as GenerationRequest;
  const call = { blocks: () => [], signal: new AbortController().signal };
  const hold = { isPromptLarge: true, promptHas() {} };
  const promptOf = () => new PromptCount(request, "bal_1" as BalanceId, deps as PromptCountDeps, call, 1_000);
  const counted = promptOf();
  expect(await counted.text()).toBe(1);
  counted.countLater(hold);
  expect(counts).toBe(1);
  promptOf().countLater(hold);
  expect(counts).toBe(2);
});

test("a prompt that cannot be counted later stays held by its bound, and makes room for others to be counted", async () => {
  let taken = 0;
  let room = 0;
  const done = Promise.withResolvers<void>();
  const deps: Partial<PromptCountDeps> = {
    count: fails,
    allowance: new CountAllowance(new ManualClock()),
    later: {
      mayTake: () => true,
      take: (bytes: number) => void (taken += bytes),
      giveBack(bytes: number) {
        room += bytes;
        done.resolve();
      },
    } as unknown as PromptCountDeps["later"],
    credit: () => 1 as NanoUsd,
  };
  const request = {
    body: new Uint8Array(10),
    promptUnseen: false,
    promptHasFiles: true,
  } as GenerationRequest;
  const call = { blocks: () => [], signal: new AbortController().signal };
  const prompt = new PromptCount(request, "bal_1" as BalanceId, deps as PromptCountDeps, call, 1_000);
  prompt.countLater({
    isPromptLarge: true,
    promptHas() {
      throw new Error("nothing was counted");
    },
  });
  await done.promise;
  expect([taken, room]).toEqual([10, 10]);
});
