import { expect, test } from "bun:test";
import {
  UNPAID_BYTES,
  UnpaidBytes,
  type UnpaidRequest,
  UnpaidRequests,
} from "../../../src/ledger/limits/unpaid-allowance.ts";
import type { BalanceId } from "../../../src/units/id.ts";
import { ManualClock } from "../../fakes/clock.ts";

const sender = (balance: string, network = "net") => ({ balance: balance as BalanceId, network });

test.each([
  ["a small request", { bytes: 100, writes: false }, 600],
  ["a write", { bytes: 100, writes: true }, 120],
  ["a body of 8 KiB", { bytes: 8_192, writes: false }, 300],
  ["a body that a thread reads", { bytes: 10_000_000, writes: false }, 66],
] as const)("a minute of a balance without credit: %s", (_, request: UnpaidRequest, most) => {
  const clock = new ManualClock();
  const requests = new UnpaidRequests(clock, { known: () => null });
  let admitted = 0;
  while (admitted < 1_000 && requests.take(sender("bal_a"), request) === null) admitted += 1;
  expect(admitted).toBe(most);
  // A refused request takes nothing, so the wait does not grow.
  expect(requests.take(sender("bal_a"), request)).toBe(60);
  expect(requests.take(sender("bal_b"), request)).toBeNull();
  clock.advance(60_000);
  expect(requests.take(sender("bal_a"), request)).toBeNull();
});

test("bodies without credit: a balance has one of the largest a minute, its network two", () => {
  const clock = new ManualClock();
  const bytes = new UnpaidBytes(clock);
  const half = UNPAID_BYTES.aBalance / 2;
  expect(bytes.waitS(sender("bal_a"), half)).toBeNull();
  expect(bytes.take(sender("bal_a"), half)).toBeObject();
  expect(bytes.take(sender("bal_a"), half)).toBeObject();
  expect(bytes.waitS(sender("bal_a"), 1)).toBe(60);
  expect(bytes.take(sender("bal_a"), 1)).toBe(60);
  expect(bytes.take(sender("bal_b"), UNPAID_BYTES.aBalance)).toBeObject();
  expect(bytes.take(sender("bal_c"), 1)).toBe(60);
  expect(bytes.take(sender("bal_c", "other"), 1)).toBeObject();
});

test("a body larger than all that a balance may send counts as that much, and is read", () => {
  const bytes = new UnpaidBytes(new ManualClock());
  expect(bytes.waitS(sender("bal_a"), UNPAID_BYTES.aBalance * 2)).toBeNull();
  expect(bytes.take(sender("bal_a"), UNPAID_BYTES.aBalance * 2)).toBeObject();
});

test("a body that was shorter than it might have been gives the rest back", () => {
  const bytes = new UnpaidBytes(new ManualClock());
  const taken = bytes.take(sender("bal_a"), UNPAID_BYTES.aBalance);
  if (typeof taken === "number") throw new Error("There was no room.");
  expect(bytes.waitS(sender("bal_a"), 1)).toBe(60);
  taken.adjustTo(1_000);
  expect(bytes.waitS(sender("bal_a"), UNPAID_BYTES.aBalance - 1_000)).toBeNull();
  expect(bytes.waitS(sender("bal_a"), UNPAID_BYTES.aBalance - 999)).toBe(60);
});
