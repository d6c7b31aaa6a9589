import { expect, test } from "bun:test";
import { HostCosts } from "../../src/hosts/host-costs.ts";
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
  const found = new HostCosts(new ManualClock()).note("r", charged, usd(cost));
  expect(found).toEqual(reported ? { host_charged_usd: charged, charged_usd: cost } : null);
});

test("the same route is reported once an hour, with what came together in it", () => {
  const clock = new ManualClock();
  const costs = new HostCosts(clock);
  expect(costs.note("r", 0.1, usd(0.2))).toBeNull();
  expect(costs.note("r", 0.2, usd(0.05))).toEqual({ host_charged_usd: 0.3, charged_usd: 0.25 });
  expect(costs.note("r", 5, usd(1))).toBeNull();
  expect(costs.note("other", 5, usd(1))).not.toBeNull();
  clock.advance(3_599_999);
  expect(costs.note("r", 5, usd(1))).toBeNull();
  clock.advance(1);
  expect(costs.note("r", 5, usd(1))).toEqual({ host_charged_usd: 5, charged_usd: 1 });
});
