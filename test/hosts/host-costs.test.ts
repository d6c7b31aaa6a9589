import { expect, test } from "bun:test";
import { HostCosts } from "../../src/hosts/host-costs.ts";
import type { Candidate } from "../../src/routing/candidate.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";

const usd = (amount: number) => Math.round(amount * 1e9) as NanoUsd;

test.each([
  ["as much", 1, 1, false],
  ["up to five hundredths more", 1.05, 1, false],
  ["more than that", 1.06, 1, true],
  ["less than a cent more", 0.009, 0, false],
  ["a cent more", 0.01, 0, true],
  ["less", 0.5, 1, false],
])("a host charges %s: reported with %p against %p: %p", (_, charged, cost, reported) => {
  const { costs, log } = opened();
  costs.charged(candidate("r"), charged, usd(cost));
  expect(log).toEqual(reported ? [chargedMore("r", charged, cost)] : []);
});

test("the same route is reported once an hour, with what came together in it", () => {
  const { costs, log, clock } = opened();
  const charged = (model: string, host: number, here: number) => {
    costs.charged(candidate(model), host, usd(here));
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
  costs.charged(candidate("free", true), 0, usd(0));
  expect({ log, doubted, counted }).toEqual({ log: [], doubted: [], counted: [] });
  costs.charged(candidate("free", true), 0.000_1, usd(0));
  expect({ log, doubted, counted }).toEqual({
    log: [["free route charges", { host: "h", model: "free" }]],
    doubted: ["free"],
    counted: [["a/free", "h", 0.000_1]],
  });
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
