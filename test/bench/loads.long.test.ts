import { expect, test } from "bun:test";
import { benchCrossings } from "../../bench/crossings.ts";
import { benchNeighbour } from "../../bench/neighbour.ts";
import { benchSoak } from "../../bench/soak.ts";
import { benchValues } from "../../bench/values.ts";

test("the soak runs, small, and leaves no hold and no drift behind", async () => {
  const soak = await benchSoak({ seconds: 2, streams: 40, pace: "steady", everyS: 1 }, () => {});
  expect(soak).toMatchObject({ after: { holds: 0 }, failed: 0, driftNano: "0" });
  expect(soak.served).toBeGreaterThan(0);
  expect(soak.left).toBeGreaterThan(0);
});

test("the neighbour bench runs, small: a key at its limit is refused, the other is served", async () => {
  const [alone, small, large] = await benchNeighbour(1, 0.2);
  expect([alone!.failures, small!.failures, large!.failures]).toEqual([0, 0, 0]);
  expect(small!.refused).toBeGreaterThan(0);
  expect(large!.refused).toBeGreaterThan(0);
});

test("each balance that crosses two lines is two events, which are recorded and sent", async () => {
  const { events, sendingUs } = await benchCrossings(200);
  expect(events).toBe(400);
  expect(sendingUs).toBeGreaterThan(0);
}, 300_000);

test("requests of many end users with a cap each are served, and memory is read after each thousand", async () => {
  const rows = await benchValues(2_000, 1_000);
  expect(rows.map(({ values }) => values)).toEqual([1_000, 2_000]);
  expect(rows.every(({ manyMb, oneMb }) => manyMb > 0 && oneMb > 0)).toBe(true);
}, 300_000);
