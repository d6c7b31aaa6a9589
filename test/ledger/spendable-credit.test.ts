import { expect, test } from "bun:test";
import { SpendableCredit } from "../../src/ledger/spendable-credit.ts";
import type { BalanceId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";

const ONE = "bal_one" as BalanceId;

/** A ledger whose memory and store hold so much. */
function open(memory: number | null, store: number) {
  const clock = new ManualClock();
  const amounts = { memory, store };
  let reads = 0;
  const spendable = new SpendableCredit(
    {
      creditInMemory: (_, enough) =>
        amounts.memory === null || amounts.memory < enough ? null : (amounts.memory as NanoUsd),
    },
    async () => {
      reads++;
      const total = amounts.store as NanoUsd;
      return { credited: total, total, held: 0 as NanoUsd, available: total };
    },
    clock,
  );
  return { clock, means: spendable, amounts, reads: () => reads };
}

test("what is in memory is known at once, and the store is not asked", async () => {
  const { means: spendable, reads } = open(5, 9);
  expect([await spendable.of(ONE), spendable.known(ONE), reads()]).toEqual([5, 5, 0]);
});

test("the store is asked where what is in memory is not enough", async () => {
  const { means: spendable, reads } = open(5, 9);
  expect([await spendable.of(ONE, 5), reads()]).toEqual([5, 0]);
  expect([await spendable.of(ONE, 6), reads()]).toEqual([9, 1]);
});

test("a balance without credit is asked for once in five seconds, one with credit each time", async () => {
  const { clock, means: spendable, amounts, reads } = open(null, 0);
  for (let n = 0; n < 10; n++) expect(await spendable.of(ONE)).toBe(0 as NanoUsd);
  expect([spendable.known(ONE), reads()]).toEqual([0, 1]);
  amounts.store = 7;
  clock.advance(4_999);
  expect(await spendable.of(ONE)).toBe(0 as NanoUsd);
  clock.advance(1);
  expect([await spendable.of(ONE), await spendable.of(ONE), reads()]).toEqual([7, 7, 3]);
});

test("of what nobody has asked for yet, nothing is known until it has been loaded", async () => {
  const { means: spendable, reads } = open(null, 0);
  expect(spendable.known(ONE)).toBeNull();
  while (spendable.known(ONE) === null) await Promise.resolve();
  expect([spendable.known(ONE), reads()]).toEqual([0, 1]);
});
