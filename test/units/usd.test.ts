import { expect, test } from "bun:test";
import { highestPrice, ratesAt } from "../../src/catalog/price.ts";
import { costOf, worstCase } from "../../src/ledger/charge.ts";
import {
  decimalUsd,
  formatUsd,
  lineFemto,
  MAX_NANO_USD,
  nanoFromUsd,
  nanoUsd,
  pricePerMillion,
  sumLines,
  usdFromNano,
} from "../../src/units/usd.ts";

test.each([
  [0, 0],
  [1, 1_000_000_000],
  [0.000000001, 1],
  [5.25, 5_250_000_000],
  [0.1 + 0.2, 300_000_000],
  [1_000_000.000000001, 1_000_000_000_000_001],
  [-2, -2_000_000_000],
])("%p USD is %p nano-dollars", (usd, nano) => expect(nanoFromUsd(usd)).toBe(nanoUsd(nano)));

test.each([
  [Number.NaN],
  [Number.POSITIVE_INFINITY],
  [0.0000000001],
  [2.2e-308],
  [-5e-324],
  [1.0000000005],
  [8_000_000.000000001],
])("%p is not an amount", (usd) => expect(nanoFromUsd(usd)).toBeNull());

test("the largest amounts keep their nano-dollar as JSON numbers", () => {
  for (let below = 0; below < 2_000; below++) {
    const nano = nanoUsd(MAX_NANO_USD - below);
    expect(nanoFromUsd(JSON.parse(JSON.stringify(usdFromNano(nano))))).toBe(nano);
    expect(JSON.stringify(usdFromNano(nano))).toBe(decimalUsd(nano));
    expect(`$${decimalUsd(nano)}`).toBe(
      formatUsd(nano)
        .replace(/\.00$/, "")
        .replace(/(\.\d)0$/, "$1"),
    );
  }
});

test.each([
  [0, "$0.00"],
  [1, "$0.000000001"],
  [7_500, "$0.0000075"],
  [1_250_000_000, "$1.25"],
  [1_200_000_000, "$1.20"],
  [-50_000_000, "-$0.05"],
])("%p nano-dollars read %p", (nano, text) => expect(formatUsd(nanoUsd(nano))).toBe(text));

test("a charge is exact and rounded once, up", () => {
  const price = {
    input: pricePerMillion(0.15)!,
    output: pricePerMillion(0.6)!,
    cacheRead: pricePerMillion(0.0375)!,
    cacheWrite: pricePerMillion(0.15)!,
  };
  const tokens = { input: 3, cacheRead: 1, cacheWrite: 0, output: 7, reasoning: 2 };
  // 3 × 150 + 1 × 37.5 + 7 × 600 = 4687.5 nano-dollars
  expect(costOf(tokens, price)).toBe(nanoUsd(4_688));
});

test("sums beyond 2^53 femto-dollars stay exact", () => {
  const price = pricePerMillion(75)!;
  expect(typeof lineFemto(1_000_000, price)).toBe("bigint");
  expect(sumLines(lineFemto(1_000_000, price), lineFemto(1, pricePerMillion(0.000000001)!))).toBe(
    nanoUsd(75_000_000_001),
  );
});

test("what is more expensive than any balance costs as much as the largest", () => {
  const mostExpensive = pricePerMillion(1_000_000)!;
  expect(sumLines(lineFemto(1_000_000_000, mostExpensive), lineFemto(1_000_000_000, mostExpensive))).toBe(
    MAX_NANO_USD,
  );
});

test("the worst case bounds every host and every kind of prompt token", () => {
  const cheap = { input: 1, output: 9, cacheRead: 1, cacheWrite: 5 } as never;
  const other = { input: 3, output: 2, cacheRead: 1, cacheWrite: 1 } as never;
  const bound = highestPrice([cheap, other]);
  expect(bound).toEqual({
    input: 3,
    output: 9,
    cacheRead: 1,
    cacheWrite: 5,
    audioInput: 3,
    audioOutput: 9,
  } as never);
  const prompt = { bound: 2_000_000, retentions: {}, hasAudio: false };
  expect(worstCase(prompt, 1_000_000, ratesAt(bound, 0))).toBe(nanoUsd(2 * 5 + 9));
});

test("what is kept in a cache for an hour has a price of its own, which bounds such a prompt", () => {
  const price = { input: 3, output: 9, cacheRead: 1, cacheWrite: 5, cacheWrites: { "1h": 7 } } as never;
  const tokens = {
    input: 0,
    cacheRead: 0,
    cacheWrite: 3_000_000,
    cacheWrites: { "1h": 1_000_000 },
    output: 0,
    reasoning: 0,
  };
  expect(costOf(tokens, price)).toBe(nanoUsd(2 * 5 + 7));
  const other = { input: 1, output: 9, cacheRead: 1, cacheWrite: 6 } as never;
  expect(highestPrice([price, other])).toMatchObject({ cacheWrite: 6, cacheWrites: { "1h": 7 } } as never);
  expect(worstCase({ bound: 1_000_000, retentions: { "1h": true }, hasAudio: false }, 0, price)).toBe(
    nanoUsd(7),
  );
  expect(worstCase({ bound: 1_000_000, retentions: {}, hasAudio: false }, 0, price)).toBe(nanoUsd(5));
  expect(worstCase({ bound: 1_000_000, retentions: { "1h": true }, hasAudio: false }, 0, other)).toBe(
    nanoUsd(6),
  );
});

test.each([
  [0, 0],
  [0.000_000_001, 1],
  [1_000_000, 1e15],
  [1_000_000.01, null],
  [-0.01, null],
  [Number.NaN, null],
  [Number.POSITIVE_INFINITY, null],
])("a price of $%p per million tokens is read as %p", (usd, price) => {
  expect<number | null>(pricePerMillion(usd)).toBe(price);
});
