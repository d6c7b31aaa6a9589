import { expect, test } from "bun:test";
import { benchFailover } from "../../bench/failover.ts";
import { benchNeighbour } from "../../bench/neighbour.ts";
import { benchPause } from "../../bench/pause.ts";
import { benchSizing, sizingTable } from "../../bench/sizing.ts";
import { benchSoak } from "../../bench/soak.ts";

test("the sizing bench runs, small: every load has a rate, and open streams a size", async () => {
  const size = { seconds: 0.2, rounds: 1, open: 100, memory: [20], settleMs: 50 };
  const sizing = await benchSizing(size, () => {});
  for (const { perSecond } of sizing.rows) expect(perSecond).toBeGreaterThan(0);
  expect(sizingTable(sizing)).toContain("20 open streams: ");
});

test("the soak runs, small, and leaves no hold and no drift behind", async () => {
  const soak = await benchSoak({ seconds: 2, streams: 40, pace: "steady", everyS: 1 }, () => {});
  expect(soak).toMatchObject({ after: { holds: 0 }, failed: 0, driftNano: "0" });
  expect(soak.served).toBeGreaterThan(0);
  expect(soak.left).toBeGreaterThan(0);
});

test("the failover suite runs, small: every failure reaches the next host", async () => {
  const results = await benchFailover(3);
  expect(results.map(({ failure }) => failure)).toContain("refused connection");
  for (const { p50 } of results) expect(p50).toBeGreaterThan(0);
});

test("the pause bench runs, small, and measures each before and after", async () => {
  const rows = await benchPause({ rounds: 1, pauseMs: 5, requests: 64 });
  expect(rows.map(({ name }) => name)).toEqual([
    "gateway",
    "gateway, Bun as it is",
    "bare proxy, Bun as it is",
  ]);
  for (const { before, after } of rows) {
    for (const { p50, p99 } of [before, after]) expect(p99).toBeGreaterThanOrEqual(p50);
  }
});

test("the neighbour bench runs, small: a key at its limit is refused, the other is served", async () => {
  const [alone, small, large] = await benchNeighbour(1, 0.2);
  expect([alone!.failures, small!.failures, large!.failures]).toEqual([0, 0, 0]);
  expect(small!.refused).toBeGreaterThan(0);
  expect(large!.refused).toBeGreaterThan(0);
});
