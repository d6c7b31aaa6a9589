import { expect, test } from "bun:test";
import type { Price } from "../../src/catalog/price.ts";
import { NO_TOKENS } from "../../src/catalog/tokens.ts";
import { HostCosts } from "../../src/hosts/host-costs.ts";
import type { Candidate } from "../../src/routing/candidate.ts";
import type { NanoPerMillion } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";

/** USD for a million tokens of any kind. */
const at = (usdPerMillion: number): Price => {
  const rate = Math.round(usdPerMillion * 1e9) as NanoPerMillion;
  return { input: rate, output: rate, cacheRead: rate, cacheWrite: rate };
};
const MILLION = { ...NO_TOKENS, output: 1_000_000 };

/** The host reports a cost, and the balance is charged another. */
const charge = (costs: HostCosts, one: Candidate, reportedUsd: number, chargedUsd: number) =>
  costs.answered({ ...one, price: at(chargedUsd) }, MILLION, reportedUsd);

test.each([
  ["as much", 1, 1, false],
  ["up to five hundredths more", 1.05, 1, false],
  ["more than that", 1.06, 1, true],
  ["less than a cent more", 0.009, 0, false],
  ["a cent more", 0.01, 0, true],
  ["less", 0.5, 1, false],
])("a host charges %s: reported with %p against %p: %p", (_, charged, cost, reported) => {
  const { costs, log } = opened();
  charge(costs, candidate("r"), charged, cost);
  expect(log).toEqual(reported ? [chargedMore("r", charged, cost)] : []);
});

test("the same route is reported once an hour, with what came together in it", () => {
  const { costs, log, clock } = opened();
  const charged = (model: string, host: number, here: number) => {
    charge(costs, candidate(model), host, here);
    return log.splice(0);
  };
  expect(charged("r", 0.1, 0.2)).toEqual([]);
  expect(charged("r", 0.2, 0.05)).toEqual([chargedMore("r", 0.3, 0.25)]);
  expect(charged("r", 5, 1)).toEqual([]);
  expect(charged("other", 5, 1)).toHaveLength(1);
  clock.advance(3_599_999);
  expect(charged("r", 5, 1)).toEqual([]);
  clock.advance(1);
  expect(charged("r", 5, 1)).toEqual([chargedMore("r", 5, 1)]);
});

test("a free route that charges anything is reported and doubted; one that charges nothing is neither", () => {
  const { costs, log, doubted, counted } = opened();
  charge(costs, candidate("free", true), 0, 0);
  expect({ log, doubted, counted }).toEqual({ log: [], doubted: [], counted: [] });
  charge(costs, candidate("free", true), 0.000_1, 0);
  expect({ log, doubted, counted }).toEqual({
    log: [["free route charges", { host: "h", model: "free" }]],
    doubted: ["free"],
    counted: [["a/free", "h", 0.000_1]],
  });
});

test("where a host reports no cost, what the operator knows of the route counts", () => {
  const { costs, counted, log } = opened();
  // 1,000 tokens at $10 per million are sold for 1 cent, and cost 2.
  const { route, ...rest } = candidate("known");
  const known = { ...rest, route: { ...route, cost: at(20) }, price: at(10) };
  const tokens = { ...NO_TOKENS, input: 600, output: 400 };
  costs.answered(known, tokens, undefined);
  expect(log).toEqual([chargedMore("known", 0.02, 0.01)]);
  // What the host reports goes before it.
  costs.answered(known, tokens, 0.005);
  costs.answered({ ...known, route }, tokens, undefined);
  expect(counted).toEqual([
    ["a/known", "h", 0.02],
    ["a/known", "h", 0.005],
  ]);
});

function opened() {
  const clock = new ManualClock();
  const log: unknown[] = [];
  const doubted: string[] = [];
  const counted: unknown[] = [];
  const costs = new HostCosts({
    clock,
    metrics: { hostCharged: (...charge) => counted.push(charge) },
    freeRoutes: { doubt: ({ model }) => void doubted.push(model) },
    log: (event, fields) => void log.push([event, fields]),
  });
  return { clock, log, doubted, counted, costs };
}

const candidate = (model: string, free = false): Candidate =>
  ({ model: { id: `a/${model}` }, route: { host: { id: "h" }, model, free } }) as Candidate;

const chargedMore = (model: string, host: number, here: number) => [
  "host charges more",
  { host: "h", model, host_charged_usd: host, charged_usd: here },
];
