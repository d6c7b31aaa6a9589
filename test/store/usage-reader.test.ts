import { afterEach, expect, test } from "bun:test";
import { MAX_CHARTS, UsageReader } from "../../src/store/usage/usage.ts";
import { epochMs } from "../../src/units/clock.ts";
import type { BalanceId } from "../../src/units/id.ts";

/** Nothing is read: the thread is ended before it could answer. */
let reader: UsageReader;
afterEach(() => reader.stop());

const PENDING = Symbol("pending");
function chartOf(balance: string | null) {
  const scope = { balanceId: balance as BalanceId | null, keyId: null, since: epochMs(0), stretchMs: 1 };
  return Promise.race([reader.sums(scope), new Promise((resolve) => setImmediate(() => resolve(PENDING)))]);
}

test("a balance has four charts drawn at once; others still have theirs, and the operator has as many as there are", async () => {
  reader = new UsageReader("/nowhere/usage.sqlite", MAX_CHARTS);
  const owners = [...Array(6).fill("bal_a"), "bal_b", ...Array(MAX_CHARTS).fill(null)];
  // All in one turn, before the thread can have answered.
  const charts = await Promise.all(owners.map(chartOf));
  const drawn = (from: number, to: number) => charts.slice(from, to).map((one) => one === PENDING);
  expect(drawn(0, 7)).toEqual([true, true, true, true, false, false, true]);
  expect(drawn(7, charts.length).filter(Boolean)).toHaveLength(MAX_CHARTS - 5);
});

test("a caller that waits when the thread ends gets nothing, and there is room again", async () => {
  reader = new UsageReader("/nowhere/usage.sqlite", 1);
  const scope = { balanceId: null, keyId: null, since: epochMs(0), stretchMs: 1 };
  const waiting = reader.sums(scope);
  expect(await reader.sums(scope)).toBeNull();
  reader.stop();
  expect(await waiting).toBeNull();
  expect(await chartOf(null)).toBe(PENDING);
});
