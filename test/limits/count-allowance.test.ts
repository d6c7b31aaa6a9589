import { expect, test } from "bun:test";
import { BYTES_A_MINUTE, CountAllowance } from "../../src/limits/count-allowance.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { ManualClock } from "../fakes/clock.ts";

const ONE = "bal_one" as BalanceId;
const OTHER = "bal_other" as BalanceId;
const HALF = BYTES_A_MINUTE / 2;

test("counts for nothing are bounded a minute and balance, and begin anew when the minute is over", () => {
  const clock = new ManualClock();
  const allowance = new CountAllowance(clock);
  const takes = (balance: BalanceId, bytes: number) => allowance.take(balance, bytes) !== null;
  expect([takes(ONE, HALF), takes(ONE, HALF), takes(ONE, 1)]).toEqual([true, true, false]);
  expect(takes(OTHER, HALF)).toBe(true);
  clock.advance(59_000);
  expect(takes(ONE, 1)).toBe(false);
  clock.advance(2_000);
  expect(takes(ONE, HALF)).toBe(true);
});

test("what is given back may be taken again", () => {
  const allowance = new CountAllowance(new ManualClock());
  for (let n = 0; n < 10; n++) {
    const taken = [allowance.take(ONE, HALF), allowance.take(ONE, HALF)];
    expect(taken).not.toContain(null);
    expect(allowance.take(ONE, HALF)).toBeNull();
    for (const one of taken) one!.giveBack();
  }
});

test("many small ones are bounded too", () => {
  const allowance = new CountAllowance(new ManualClock());
  let counts = 0;
  while (allowance.take(ONE, 1) !== null) counts++;
  expect(counts).toBe(2_048);
});

test("one that is larger than all of it is counted, and is the last of its minute", () => {
  const allowance = new CountAllowance(new ManualClock());
  expect(allowance.take(ONE, BYTES_A_MINUTE * 2)).not.toBeNull();
  expect(allowance.take(ONE, 1)).toBeNull();
});
