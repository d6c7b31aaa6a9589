import { expect, test } from "bun:test";
import type { Host, Model } from "../../src/catalog/catalog.ts";
import { catalogAt, catalogOf } from "../../src/catalog/catalog.ts";
import type { Price } from "../../src/catalog/price.ts";
import { matcherOf, modelsAt, type PriceRule } from "../../src/catalog/price-list.ts";
import type { NanoPerMillion } from "../../src/units/usd.ts";

const n = (value: number) => value as NanoPerMillion;
const HOST = { id: "h" } as Host;
const PRICE: Price = {
  input: n(1_000_000_001),
  output: n(4_000_000_000),
  cacheRead: n(1),
  cacheWrite: n(1_250_000_000),
  cacheWrites: { "30m": n(1_250_000_000), "12h": n(2_500_000_000) },
  audioInput: n(7),
  above: [
    {
      prompt: 1_000,
      input: n(1_000_000_002),
      output: n(4_000_000_001),
      cacheRead: n(2),
      cacheWrite: n(1_250_000_001),
      cacheWrites: { "30m": n(1_250_000_001), "12h": n(2_500_000_001) },
      audioInput: n(8),
    },
  ],
};
const model = (id: string, price: Price | null = PRICE): Model => ({
  id,
  name: id,
  contextLength: 10,
  maxOutputTokens: 5,
  price,
  routes: [
    { host: HOST, model: "m", price, free: false },
    { host: HOST, model: "f", price: null, free: true },
  ],
});
const priced = (rules: readonly PriceRule[], one = model("a/one")): Model =>
  modelsAt({ name: "list", rules }, new Map([[one.id, one]])).get(one.id)!;
const factor = (pattern: string, factorMillionths: number): PriceRule => ({
  model: pattern,
  change: { factorMillionths },
});

test.each([
  ["a/one", "a/one", true],
  ["a/one", "a/one2", false],
  ["*", "a/one", true],
  ["a/*", "a/one", true],
  ["a/*", "b/a/one", false],
  ["*-mini", "a/gpt-mini", true],
  ["*-mini", "a/gpt-mini-2", false],
  ["a/gpt-*-mini", "a/gpt-5-mini", true],
  ["a/gpt-*-mini", "a/gpt-mini", false],
  ["a*b*c", "aXbYc", true],
  ["a*b*c", "aXcYb", false],
  ["a*a", "a", false],
  ["a.*", "ab1", false],
])("the pattern %s and the model %s: %p", (pattern, id, matches) => {
  expect(matcherOf(pattern)(id)).toBe(matches);
});

test("a factor applies to every member of a price, those of steps and retentions too, each rounded up", () => {
  const { price, routes } = priced([factor("*", 900_001)]);
  expect(price).toEqual({
    // 1,000,000,001 × 0.900001 = 900,001,000.900001
    input: n(900_001_001),
    output: n(3_600_004_000),
    cacheRead: n(1),
    cacheWrite: n(1_125_001_250),
    cacheWrites: { "30m": n(1_125_001_250), "12h": n(2_250_002_500) },
    audioInput: n(7),
    above: [
      {
        prompt: 1_000,
        input: n(900_001_002),
        output: n(3_600_004_001),
        cacheRead: n(2),
        cacheWrite: n(1_125_001_251),
        cacheWrites: { "30m": n(1_125_001_251), "12h": n(2_250_002_501) },
        audioInput: n(8),
      },
    ],
  });
  expect(routes.map((route) => route.price)).toEqual([price, null]);
});

test("the first rule that matches decides, and what no rule matches keeps its own price", () => {
  expect(priced([factor("a/*", 2_000_000), factor("*", 3_000_000)]).price!.output).toBe(n(8_000_000_000));
  expect(priced([factor("b/*", 2_000_000)])).toEqual(model("a/one"));
  const own: Price = { ...PRICE, input: n(5) };
  const { price, routes } = priced([{ model: "a/one", change: { price: own } }], model("a/one", null));
  expect([price, routes[0]!.price, routes[1]!.price]).toEqual([own, own, null]);
  expect(priced([factor("*", 2_000_000)], model("a/one", null)).price).toBe(null);
});

test("each list has a version of its own that changes with its prices, and a list that is gone sells nothing", () => {
  const models = new Map([["a/one", model("a/one")]]);
  const catalogWith = (millionths: number) =>
    catalogOf({ models, auto: new Map(), hosts: new Map() }, [
      { name: "partner", rules: [factor("*", millionths)] },
    ]);
  const [one, other] = [catalogWith(900_000), catalogWith(900_001)];
  const versions = [one, other].map((catalog) => catalogAt(catalog, "partner").priceVersion);
  expect(versions[0]).not.toBe(versions[1]!);
  expect(catalogAt(one, null).priceVersion).toBe(other.priceVersion);
  expect(versions).not.toContain(one.priceVersion);
  const gone = catalogAt(one, "gone").models.get("a/one")!;
  expect([gone.price, ...gone.routes.map(({ price }) => price)]).toEqual([null, null, null]);
});
