import { expect, test } from "bun:test";
import { Means } from "../../src/ledger/means.ts";
import type { BalanceId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";

const ONE = "bal_one" as BalanceId;

/** A ledger whose memory and store hold so much. */
function open(memory: number | null, store: number) {
  const clock = new ManualClock();
  const amounts = { memory, store };
  let asked = 0;
  const means = new Means(
    { creditInMemory: () => amounts.memory as NanoUsd | null },
    async () => {
      asked++;
      const total = amounts.store as NanoUsd;
      return { total, held: 0 as NanoUsd, available: total };
    },
    clock,
  );
  return { clock, means, amounts, asked: () => asked };
}

test("what is in memory is known at once, and the store is not asked", async () => {
  const { means, asked } = open(5, 9);
  expect([await means.of(ONE), means.known(ONE), asked()]).toEqual([5, 5, 0]);
});

test("a balance without credit is asked for once in five seconds, one with credit each time", async () => {
  const { clock, means, amounts, asked } = open(null, 0);
  for (let n = 0; n < 10; n++) expect(await means.of(ONE)).toBe(0 as NanoUsd);
  expect([means.known(ONE), asked()]).toEqual([0, 1]);
  amounts.store = 7;
  clock.advance(4_999);
  expect(await means.of(ONE)).toBe(0 as NanoUsd);
  clock.advance(1);
  expect([await means.of(ONE), await means.of(ONE), asked()]).toEqual([7, 7, 3]);
});

test("of what nobody has asked for yet, nothing is known until it has been loaded", async () => {
  const { means, asked } = open(null, 0);
  expect(means.known(ONE)).toBeNull();
  while (means.known(ONE) === null) await Promise.resolve();
  expect([means.known(ONE), asked()]).toEqual([0, 1]);
});
