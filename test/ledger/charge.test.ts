import { describe, expect, test } from "bun:test";
import { highestPrice, type Rates, ratesAt } from "../../src/catalog/price.ts";
import { NO_TOKENS, type Tokens } from "../../src/catalog/tokens.ts";
import { affordableOutput, costOf, type PromptCharge, worstCase } from "../../src/ledger/charge.ts";
import { type NanoUsd, pricePerMillion } from "../../src/units/usd.ts";
import { Random } from "../sim/random.ts";

const DOLLAR = 1_000_000_000;
const per = (perMillion: number) => pricePerMillion(perMillion)!;
const priced = ({ cacheWrite1h, ...row }: Readonly<Record<string, number>>): Rates => ({
  ...(Object.fromEntries(Object.entries(row).map(([kind, usd]) => [kind, per(usd)])) as unknown as Rates),
  ...(cacheWrite1h === undefined ? {} : { cacheWrites: { "1h": per(cacheWrite1h) } }),
});

const BASE = { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 2 };
const MILLION = 1_000_000;

describe("a million tokens of a kind cost its price", () => {
  const cases: [tokens: Partial<Tokens>, price: Record<string, number>, usd: number][] = [
    [{ input: MILLION }, BASE, 1],
    [{ cacheRead: MILLION }, BASE, 0.1],
    [{ cacheWrite: MILLION }, BASE, 2],
    [{ output: MILLION }, BASE, 10],
    // Parts without a price of their own cost what the whole does.
    [{ cacheWrite: MILLION, cacheWrites: { "1h": MILLION } }, BASE, 2],
    [{ input: MILLION, audioInput: MILLION }, BASE, 1],
    [{ output: MILLION, audioOutput: MILLION }, BASE, 10],
    [{ cacheWrite: MILLION, cacheWrites: { "1h": MILLION } }, { ...BASE, cacheWrite1h: 4 }, 4],
    [{ cacheWrite: 2 * MILLION, cacheWrites: { "1h": MILLION } }, { ...BASE, cacheWrite1h: 4 }, 6],
    [{ input: 2 * MILLION, audioInput: MILLION }, { ...BASE, audioInput: 50 }, 51],
    [{ output: 2 * MILLION, audioOutput: MILLION }, { ...BASE, audioOutput: 80 }, 90],
    // Thoughts are a part of the output, and are not paid twice.
    [{ output: MILLION, reasoning: MILLION }, BASE, 10],
  ];
  test.each(cases)("%o at %o: $%d", (tokens, price, usd) => {
    expect(costOf({ ...NO_TOKENS, ...tokens }, priced(price))).toBe((usd * DOLLAR) as NanoUsd);
  });
});

/** Prices to nine decimals, some of them 0, with and without the optional kinds. */
function anyPrice(random: Random): Rates {
  const usd = () => (random.below(5) === 0 ? 0 : random.below(100_000_000) / 1_000_000);
  const row: Record<string, number> = { input: usd(), output: usd(), cacheRead: usd(), cacheWrite: usd() };
  for (const kind of ["cacheWrite1h", "audioInput", "audioOutput"])
    if (random.below(2) === 0) row[kind] = usd();
  return priced(row);
}

test("the highest of several prices costs no less than any of them, whatever the tokens are", () => {
  const random = new Random(1);
  for (let round = 0; round < 2_000; round++) {
    const prices = Array.from({ length: 1 + random.below(4) }, () => anyPrice(random));
    const [input, cacheWrite, output] = [random.below(5_000), random.below(5_000), random.below(5_000)];
    const tokens = {
      ...NO_TOKENS,
      input,
      audioInput: random.below(input + 1),
      cacheRead: random.below(5_000),
      cacheWrite,
      cacheWrites: { "1h": random.below(cacheWrite + 1) },
      output,
      audioOutput: random.below(output + 1),
    };
    const most = Math.max(...prices.map((price) => costOf(tokens, price)));
    expect(costOf(tokens, ratesAt(highestPrice(prices), 0))).toBeGreaterThanOrEqual(most);
    expect(costOf(tokens, ratesAt(highestPrice([prices[0]!]), 0))).toBe(costOf(tokens, prices[0]!));
  }
});

test("a worst case covers every way in which its prompt may be priced, and is one of them", () => {
  const random = new Random(2);
  const bound = 1_000;
  for (let round = 0; round < 2_000; round++) {
    const price = anyPrice(random);
    const prompt: PromptCharge = {
      bound,
      retentions: random.below(2) === 0 ? { "1h": true } : {},
      hasAudio: random.below(2) === 0,
    };
    const output = random.below(2_000);
    const ways: Partial<Tokens>[] = [
      { input: bound },
      { cacheRead: bound },
      { cacheWrite: bound },
      ...("1h" in prompt.retentions ? [{ cacheWrite: bound, cacheWrites: { "1h": bound } }] : []),
      ...(prompt.hasAudio ? [{ input: bound, audioInput: bound }] : []),
    ];
    const costs = ways.map((way) => costOf({ ...NO_TOKENS, ...way, output }, price));
    expect(worstCase(prompt, output, price)).toBe(Math.max(...costs) as NanoUsd);
  }
});

describe("the output that a balance covers", () => {
  const prompt: PromptCharge = { bound: 1_000, retentions: {}, hasAudio: false };

  test("is covered with the prompt, and a token more of each choice is not", () => {
    const random = new Random(3);
    for (let round = 0; round < 2_000; round++) {
      const price = anyPrice(random);
      if (price.output === 0) continue;
      const available = random.below(DOLLAR) as NanoUsd;
      const choices = 1 + random.below(4);
      const most = affordableOutput(available, prompt, choices, price);
      if (most > 0) expect(worstCase(prompt, most * choices, price)).toBeLessThanOrEqual(available);
      expect(worstCase(prompt, (most + 1) * choices, price)).toBeGreaterThan(available);
    }
  });

  const table: [available: number, price: Record<string, number>, most: number][] = [
    [2 * DOLLAR, { ...BASE, cacheWrite: 1 }, 199_900],
    [0, BASE, 0],
    // All of it, to the last nano-dollar.
    [2_986_000, { ...BASE, output: 2 }, 493],
    // Just the prompt, and a little less.
    [2_000_000, BASE, 0],
    [1_999_999, BASE, 0],
    [1_999_999, { ...BASE, output: 0 }, 0],
    [2_000_000, { ...BASE, output: 0 }, Number.MAX_SAFE_INTEGER],
    [DOLLAR, { ...BASE, output: 0 }, Number.MAX_SAFE_INTEGER],
  ];
  test.each(table)("of %d nano-dollars at %o: %d tokens", (available, price, most) => {
    expect(affordableOutput(available as NanoUsd, prompt, 1, priced(price))).toBe(most);
  });
});
