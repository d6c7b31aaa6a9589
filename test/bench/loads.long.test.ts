import { expect, test } from "bun:test";
import { benchCrossings } from "../../bench/crossings.ts";
import { benchNeighbour } from "../../bench/neighbour.ts";
import { benchSoak } from "../../bench/soak.ts";

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
