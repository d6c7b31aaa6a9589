import { describe, expect, test } from "bun:test";
import { benchEvents } from "../../bench/events.ts";
import { pieces } from "../../bench/micro.ts";
import { stillCostlier, verdictOn } from "../../bench/regression.ts";
import { faultsOf } from "../../bench/soak.ts";

test("every micro bench computes the right thing, and runs next to its baseline", async () => {
  for (const piece of await pieces()) {
    piece.check();
    expect(piece.baseline).not.toThrow();
    expect(piece.ours).not.toThrow();
  }
});

test("the events' suite runs, small: every case ends properly", () => {
  for (const { eventUs } of benchEvents({ rounds: 1, deltas: 50, streams: 10 }))
    expect(eventUs).toBeGreaterThan(0);
});

test("a soak tells what is left behind", () => {
  const sample = { atS: 0, megabytes: 100, descriptors: 10, holds: 0 };
  const samples = [100, 100, 100, 130].map((megabytes) => ({ ...sample, megabytes }));
  const after = { ...sample, descriptors: 500, holds: 2 };
  const counts = { served: 9, left: 1, failed: 1, driftNano: "7" };
  expect(faultsOf({ before: sample, samples, after, ...counts })).toHaveLength(5);
  expect(
    faultsOf({
      before: sample,
      samples: samples.slice(0, 3),
      after: sample,
      ...counts,
      failed: 0,
      driftNano: "0",
    }),
  ).toEqual([]);
});

describe("a figure is costlier than its reference", () => {
  const figure = (...ours: number[]) => ({ name: "a request", ours, baseline: [1, 1, 1] });
  test.each([
    ["when its best turn is far above it", figure(20, 20, 21), 10, true],
    ["not when one turn was as good as ever", figure(10, 20, 21), 10, false],
    ["not when the turns differ by as much as it does", figure(15, 24, 25), 10, false],
    ["not when it is cheaper", figure(5, 5, 5), 10, false],
    ["not when it is new", figure(20, 20, 20), null, false],
  ])("%s", (_what, measured, reference, costlier) => {
    expect(verdictOn(measured, reference).costlier).toBe(costlier);
  });
});

test("only what is costlier in each attempt has become costlier", () => {
  const verdicts = (...costlier: string[]) =>
    ["a", "b", "c"].map((name) => ({
      name,
      ratio: 1,
      noise: 0,
      reference: 1,
      costlier: costlier.includes(name),
    }));
  const first = stillCostlier(null, verdicts("a", "b"));
  expect(first).toEqual(["a", "b"]);
  const second = stillCostlier(first, verdicts("b", "c"));
  expect(second).toEqual(["b"]);
  expect(stillCostlier(second, verdicts("a", "c"))).toEqual([]);
});
