import { describe, expect, test } from "bun:test";
import type { Rates } from "../../src/catalog/price.ts";
import type { Tokens } from "../../src/catalog/tokens.ts";
import { costOf, within } from "../../src/ledger/charge.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { Random } from "../sim/random.ts";

/** $1 and $10 a million: 1,000 and 10,000 nano-dollars a token. */
const PRICE = {
  input: 1_000_000_000,
  output: 10_000_000_000,
  cacheRead: 100_000_000,
  cacheWrite: 1_250_000_000,
} as Rates;
const TOKENS: Tokens = { input: 100, cacheRead: 50, cacheWrite: 10, output: 30, reasoning: 20 };
const fitting = (most: number) => within(TOKENS, PRICE, most as NanoUsd);

describe("what a hold covers, in whole tokens", () => {
  test.each<[string, number, Partial<Tokens>]>([
    ["all of it", 417_500, TOKENS],
    ["a nano-dollar less: a token of the answer less", 417_499, { ...TOKENS, output: 29 }],
    ["thoughts are not more than the answer", 217_500, { ...TOKENS, output: 10, reasoning: 10 }],
    ["the prompt alone", 117_500, { ...TOKENS, output: 0, reasoning: 0 }],
    ["less than the prompt", 117_499, { input: 99, cacheWrite: 10, cacheRead: 50, output: 0 }],
    ["the caches alone", 17_500, { input: 0, cacheWrite: 10, cacheRead: 50 }],
    ["less than the caches", 6_250, { input: 0, cacheWrite: 1, cacheRead: 50 }],
    ["what was read from the cache", 300, { input: 0, cacheWrite: 0, cacheRead: 3 }],
    ["nothing", 0, { input: 0, cacheWrite: 0, cacheRead: 0, output: 0, reasoning: 0 }],
  ])("%s", (_, most, fits) => {
    expect(fitting(most)).toMatchObject(fits);
    expect<number>(costOf(fitting(most), PRICE)).toBeLessThanOrEqual(most);
  });
});

test("1,000 random ones: no more than is held, and not a token of the answer less than that", () => {
  for (let seed = 0; seed < 1_000; seed++) {
    const random = new Random(seed);
    const any = () => (1 + random.below(20_000_000_000)) as Rates["input"];
    const price: Rates = {
      input: any(),
      output: any(),
      cacheRead: any(),
      cacheWrite: any(),
      cacheWrites: { "1h": any() },
      audioInput: any(),
      audioOutput: any(),
    };
    const count = () => random.below(1_000);
    const tokens: Tokens = {
      input: 500 + count(),
      audioInput: random.below(500),
      cacheRead: count(),
      cacheWrite: 500 + count(),
      cacheWrites: { "1h": random.below(500) },
      output: 500 + count(),
      audioOutput: random.below(500),
      reasoning: random.below(500),
    };
    const prompt = costOf({ ...tokens, output: 0, audioOutput: 0, reasoning: 0 }, price);
    const all = costOf(tokens, price);
    const most = (prompt + random.below(all - prompt)) as NanoUsd;
    const fits = within(tokens, price, most);
    expect([seed, costOf(fits, price) <= most]).toEqual([seed, true]);
    const { input, cacheRead, cacheWrite, output } = fits;
    expect([seed, input, cacheRead, cacheWrite]).toEqual([
      seed,
      tokens.input,
      tokens.cacheRead,
      tokens.cacheWrite,
    ]);
    const more = { ...fits, output: output + 1, audioOutput: Math.min(tokens.audioOutput!, output + 1) };
    expect([seed, costOf(more, price) > most]).toEqual([seed, true]);
  }
});
