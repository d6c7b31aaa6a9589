import { expect, test } from "bun:test";
import type { Price } from "../../src/catalog/price.ts";
import { costOfEnd } from "../../src/generation/hold-settlement.ts";
import type { BilledAnswer } from "../../src/generation/native-fallback-bill.ts";
import { billedAnswer } from "../../src/generation/native-fallback-bill.ts";
import type { Candidate } from "../../src/routing/candidate.ts";
import { chainOf } from "../../src/routing/native-fallbacks.ts";
import { messages } from "../../src/surfaces/messages/messages.ts";
import type { GenerationRequest } from "../../src/surfaces/surface.ts";
import { readAnthropicUsage } from "../../src/surfaces/usage.ts";
import { type NanoUsd, pricePerMillion } from "../../src/units/usd.ts";
import { hostRow } from "../fakes/host.ts";
import { rounds } from "../rounds.ts";
import { model } from "../routing/world.ts";
import { Random } from "../sim/random.ts";

/**
 * Answers in which a host went on with up to three other models, with random prices, steps, caches, turns of its own
 * tools and summaries: what is charged is the sum over `usage.iterations`, which is worked out here from the JSON and
 * the price list alone.
 */
const CONTEXT = 1_000_000;

/** In nano-dollars: an output token above the step. */
const MAX_TOKEN_NANO = 180_000;

interface Priced {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly step: number | null;
}

/** In hundredths of a nano-dollar a token; above the step, all cost twice as much. */
const randomPrice = (below: (n: number) => number): Priced => ({
  input: 1 + below(3_000_000),
  output: 1 + below(9_000_000),
  cacheRead: below(300_000),
  cacheWrite: below(4_000_000),
  step: below(2) === 0 ? null : 1_000 + below(200_000),
});

const usd = (hundredths: number) => pricePerMillion(hundredths / 100_000)!;
function priceOf({ input, output, cacheRead, cacheWrite, step }: Priced): Price {
  const times = (by: number) => ({
    input: usd(input * by),
    output: usd(output * by),
    cacheRead: usd(cacheRead * by),
    cacheWrite: usd(cacheWrite * by),
  });
  return step === null ? times(1) : { ...times(1), above: [{ ...times(2), prompt: step }] };
}

interface Iteration {
  readonly type: "message" | "fallback_message" | "compaction";
  readonly model?: string | null;
  readonly input_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly output_tokens: number;
}

/** In nano-dollars, each model's part rounded up by itself. */
function costOfIterations(
  all: readonly (readonly [number, Iteration])[],
  prices: readonly Priced[],
  isFree: boolean,
): bigint {
  const serving = all.at(-1)![0];
  let sum = 0n;
  for (const [at, price] of prices.entries()) {
    const own = all.filter(([by]) => by === at).map(([, iteration]) => iteration);
    if (isFree && at !== serving && own.every(({ output_tokens }) => output_tokens <= 1)) continue;
    const prompts = own.map(
      (one) => one.input_tokens + one.cache_read_input_tokens + one.cache_creation_input_tokens,
    );
    const by = price.step !== null && Math.max(0, ...prompts) > price.step ? 2n : 1n;
    let hundredths = 0n;
    for (const one of own)
      hundredths +=
        BigInt(one.input_tokens) * BigInt(price.input) +
        BigInt(one.cache_read_input_tokens) * BigInt(price.cacheRead) +
        BigInt(one.cache_creation_input_tokens) * BigInt(price.cacheWrite) +
        BigInt(one.output_tokens) * BigInt(price.output);
    sum += (hundredths * by + 99n) / 100n;
  }
  return sum;
}

test("what is charged is the sum over the iterations, each at its own model's price", () => {
  const read = messages.readRequest(
    new TextEncoder().encode(
      JSON.stringify({ model: "a/0", max_tokens: 5_000, messages: [{ role: "user", content: "Hello" }] }),
    ),
  ) as GenerationRequest;
  const request = { ...read, promptBound: CONTEXT, promptEstimate: 1_000 };
  const random = new Random(20_261_128);
  const below = (n: number) => random.below(n);
  const text = { estimate: 0, estimateSinceReport: 0, all: none, sinceReport: none };
  let several = 0;
  for (let round = 0; round < rounds(5_000, 100_000); round++) {
    const isFree = below(2) === 0;
    const host = hostRow(
      { url: "http://native" },
      {
        id: "native",
        speaks: ["messages"],
        fallbacks: "native",
        ...(isFree ? { refusals: "free" as const } : {}),
      },
    );
    const prices = Array.from({ length: 2 + below(3) }, () => randomPrice(below));
    const [first, ...nativeFallbacks] = prices.map((row, at): Candidate => {
      const price = priceOf(row);
      const route = { host, model: `claude-${at}`, price, free: false };
      const more = { contextLength: CONTEXT, maxOutputTokens: 10_000 };
      return { model: model(`a/${at}`, [route], more), route, price, hostSurface: "messages" };
    });
    const all = randomIterations(below, prices.length);
    const iterations = all.map(([, iteration]) => iteration);
    const usage = readAnthropicUsage({ ...iterations.at(-1)!, iterations }, null);
    const chain = chainOf({ ...first!, nativeFallbacks });
    const answered = { candidate: chain[0]!, chain, writers: { first: null, hops: [] } };
    const billed = billedAnswer({ usage, text, isLeft: false, isFree: false }, answered, request, NOBODY);
    expect(billed).not.toBeInstanceOf(Promise);
    const { tokens, candidate, charges } = billed as BilledAnswer;
    const cost = costOfEnd({ state: "settled", tokens, candidate, charges });
    expect(BigInt(cost)).toBe(costOfIterations(all, prices, isFree));
    // Whatever it is limited to, no more is charged than that, and no less than fits of whole tokens.
    const most = below(cost + 1) as NanoUsd;
    const limited = costOfEnd({ state: "settled", tokens, candidate, charges }, most);
    expect(limited).toBeLessThanOrEqual(most);
    expect(most - limited).toBeLessThanOrEqual(2 * MAX_TOKEN_NANO);
    if (charges.length > 1) several += 1;
  }
  expect(several).toBeGreaterThan(rounds(2_000, 40_000));
}, 120_000);

/** Each model that ran, in order, with one or more turns. */
function randomIterations(below: (n: number) => number, models: number): (readonly [number, Iteration])[] {
  const all: (readonly [number, Iteration])[] = [];
  const ran = Array.from({ length: models }, (_, at) => at).filter((at) => at === 0 || below(4) > 0);
  for (const at of ran) {
    const turns = below(4) === 0 ? 1 + below(3) : 1;
    for (let turn = 0; turn < turns; turn++) {
      if (below(12) === 0 && all.length > 0 && turn > 0)
        all.push([at, { type: "compaction", ...randomTokens(below) }]);
      const name = at === 0 && below(2) === 0 ? null : `claude-${at}${below(2) === 0 ? "-20261101" : ""}`;
      all.push([at, { type: "message", model: name, ...randomTokens(below) }]);
    }
  }
  const [by, last] = all.at(-1)!;
  if (by > 0) all[all.length - 1] = [by, { ...last, type: "fallback_message" }];
  return all;
}

const randomTokens = (below: (n: number) => number) => ({
  input_tokens: 1 + below(100_000),
  cache_read_input_tokens: below(3) === 0 ? below(100_000) : 0,
  cache_creation_input_tokens: below(3) === 0 ? below(100_000) : 0,
  output_tokens: below(3) === 0 ? below(2) : below(700),
});

const none = () => ({ texts: [], unkept: 0 });
const NOBODY = { answer: async () => null, prompt: async () => null };
