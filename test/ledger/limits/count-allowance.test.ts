import { describe, expect, test } from "bun:test";
import {
  CountAllowance,
  type CountPayer,
  PAID_MS_A_MINUTE,
  UNPAID_MS,
} from "../../../src/ledger/limits/count-allowance.ts";
import type { BalanceId } from "../../../src/units/id.ts";
import { ManualClock } from "../../fakes/clock.ts";

const paid = (name: string): CountPayer => ({
  balance: `bal_${name}` as BalanceId,
  network: "192.0.2.0/24",
  hasCredit: true,
});
const free = (name: string, network = "192.0.2.0/24"): CountPayer => ({
  ...paid(name),
  network,
  hasCredit: false,
});

/** Bytes for which so much of the thread's time is taken at first. */
const bytesOf = (ms: number) => (ms - 2) / 0.000_5;
const HALF = bytesOf(PAID_MS_A_MINUTE / 2);

function open() {
  const clock = new ManualClock();
  const allowance = new CountAllowance(clock);
  const takes = (payer: CountPayer, bytes: number) => allowance.take(payer, bytes) !== null;
  return { clock, allowance, takes };
}

test("counts in vain are bounded a minute and balance, and begin again when the minute is over", () => {
  const { clock, takes } = open();
  expect([takes(paid("a"), HALF), takes(paid("a"), HALF), takes(paid("a"), 1)]).toEqual([true, true, false]);
  expect(takes(paid("b"), HALF)).toBe(true);
  clock.advance(59_000);
  expect(takes(paid("a"), 1)).toBe(false);
  clock.advance(2_000);
  expect(takes(paid("a"), HALF)).toBe(true);
});

test("what is given back may be taken again", () => {
  const { allowance } = open();
  for (let n = 0; n < 10; n++) {
    const taken = [allowance.take(paid("a"), HALF), allowance.take(paid("a"), HALF)];
    expect(taken).not.toContain(null);
    expect(allowance.take(paid("a"), HALF)).toBeNull();
    taken[0]!.took(100);
    for (const one of taken) one!.giveBack();
  }
});

test("it is the thread's time that counts, as soon as it is known", () => {
  const { allowance, takes } = open();
  const quick = allowance.take(paid("a"), HALF * 2)!;
  expect(takes(paid("a"), 1)).toBe(false);
  quick.took(1_000);
  expect(takes(paid("a"), HALF)).toBe(true);
  // Files and text of one prompt.
  quick.took(PAID_MS_A_MINUTE);
  expect(takes(paid("a"), 1)).toBe(false);
});

test("many small ones are bounded too", () => {
  const { takes } = open();
  let counts = 0;
  while (takes(paid("a"), 1)) counts++;
  expect(counts).toBe(4_998);
});

test("one that is larger than all of it is counted, and is the last of its minute", () => {
  const { takes } = open();
  expect(takes(paid("a"), HALF * 4)).toBe(true);
  expect(takes(paid("a"), 1)).toBe(false);
});

describe("without credit", () => {
  const LARGEST = bytesOf(UNPAID_MS.aBalance);

  test("a balance has a small prompt counted, not a large one, and others have theirs", () => {
    const { takes } = open();
    expect(takes(free("a"), LARGEST + 1)).toBe(false);
    expect([takes(free("a"), LARGEST), takes(free("a"), 1)]).toEqual([true, false]);
    expect(takes(free("b"), LARGEST)).toBe(true);
  });

  test("the balances of a network share what it has, and all networks what they have", () => {
    const { takes } = open();
    const counts = (network: string) =>
      Array.from({ length: 60 }, (_, n) => takes(free(`${network}${n}`, network), LARGEST)).filter(Boolean)
        .length;
    expect(counts("192.0.2.0/24")).toBe(UNPAID_MS.aNetwork / UNPAID_MS.aBalance);
    const others = Array.from({ length: 60 }, (_, n) => counts(`2001:db8:${n}::/48`));
    expect(others.reduce((sum, count) => sum + count) + 3).toBe(UNPAID_MS.inAll / UNPAID_MS.aBalance);
    expect(takes(paid("a"), HALF * 2)).toBe(true);
  });

  test("what took longer than was thought is taken from the network", () => {
    const { allowance, takes } = open();
    allowance.take(free("a"), 1)!.took(UNPAID_MS.aNetwork);
    expect(takes(free("b"), 1)).toBe(false);
    expect(takes(free("b", "198.51.100.0/24"), 1)).toBe(true);
  });
});
