import { expect, test } from "bun:test";
import { budgetCounter, type CounterId, keyCounter, runCounters } from "../../src/ledger/counter.ts";
import { countedLimit, limitEvents } from "../../src/ledger/limit-events.ts";
import { epochMs } from "../../src/units/clock.ts";
import type { NanoUsd } from "../../src/units/usd.ts";

const AT = epochMs(Date.UTC(2026, 4, 10, 12));
const DAY = keyCounter("day", "key_a", AT);
const crossing = (counter: CounterId, before: number, after: number, cap: number) =>
  limitEvents({
    counter,
    before,
    after,
    cap: cap as NanoUsd,
    of: { limit: "day" },
    balance: "bal_a",
    at: AT,
  });

test.each([
  [0, 49, 100, []],
  [0, 50, 100, [50]],
  [50, 79, 100, []],
  [49, 80, 100, [50, 80]],
  [80, 99, 100, []],
  [99, 100, 100, [100]],
  [0, 100, 100, [50, 80, 100]],
  [100, 120, 100, []],
  [0, 1, 1, [50, 80, 100]],
  [0, 1, 3, []],
  [0, 5, 0, [50, 80, 100]],
  [1, 5, 0, []],
  // A hundred times this cap, $400,000.000000003, is no exact number.
  [400_000_000_000_002, 400_000_000_000_003, 400_000_000_000_003, [100]],
])("use that goes from %p to %p of %p reaches %p percent", (before, after, cap, reached) => {
  const found = crossing(DAY, before, after, cap).map(({ data }) => JSON.parse(data).threshold_percent);
  expect(found).toEqual(reached);
});

test("a line of a window is one event, whatever the limit is meanwhile; the next window's is another", () => {
  const id = (counter: CounterId, cap: number) => crossing(counter, 0, cap / 2, cap).map((one) => one.id);
  expect(id(DAY, 100)).toEqual(id(DAY, 200));
  expect(id(DAY, 100)).not.toEqual(id(keyCounter("day", "key_a", epochMs(AT + 86_400_000)), 100));
  expect(id(DAY, 100)).not.toEqual(id(keyCounter("day", "key_b", AT), 100));
});

test("what is counted says which limit it is, and when that starts again", () => {
  expect(countedLimit("balance:bal_a" as CounterId)).toBeNull();
  expect(countedLimit("calls:bal_a/job:5" as CounterId)).toBeNull();
  expect(countedLimit(DAY)).toEqual({ kind: "day", subject: "key_a", period: "day", isValue: false });
  const { money } = runCounters({ balanceId: "bal_a", name: "a/job", startedAt: epochMs(5) });
  expect(countedLimit(money)).toEqual({ kind: "run", subject: "a/job", period: "5", isValue: false });
  const month = crossing(budgetCounter("bud_a", "month", AT), 0, 50, 100).map(({ data }) => JSON.parse(data));
  expect(month).toMatchObject([{ window: "month", resets_at: "2026-06-01T00:00:00.000Z", used_usd: 5e-8 }]);
  const total = crossing(budgetCounter("bud_a", "total", AT), 0, 50, 100).map(({ data }) => JSON.parse(data));
  expect(total).toMatchObject([{ window: "total", resets_at: null }]);
});
