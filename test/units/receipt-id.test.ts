import { expect, test } from "bun:test";
import type { EpochMs } from "../../src/units/clock.ts";
import { newReceiptId } from "../../src/units/id.ts";
import { systemRandom } from "../../src/units/random.ts";

test("receipt ids sort by the time they were made, look alike in length, and differ within a millisecond", () => {
  const times = [0, 1, 57, 58, 1_763_000_000_000, 1_763_000_000_001, 4_000_000_000_000] as EpochMs[];
  const ids = times.map((at) => newReceiptId(at, systemRandom));
  expect([...ids].sort()).toEqual(ids);
  expect(new Set(ids.map(({ length }) => length))).toEqual(new Set(["rcpt_".length + 22]));
  const same = Array.from({ length: 10_000 }, () => newReceiptId(times[4]!, systemRandom));
  expect(new Set(same).size).toBe(10_000);
});
