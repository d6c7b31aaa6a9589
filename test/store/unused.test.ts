import { expect, test } from "bun:test";
import type { BalanceCursor, RemovedUnused } from "../../src/customers/keys/key-store.ts";
import { UNUSED_PACE, unusedSlices } from "../../src/store/customers/unused-keys.ts";
import { Retention } from "../../src/store/retention.ts";
import { type EpochMs, MINUTE_MS } from "../../src/units/clock.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { ManualClock } from "../fakes/clock.ts";

test("a store that refused is asked again soon, and from where it was", async () => {
  const clock = new ManualClock();
  const faults: unknown[] = [];
  const queries: string[] = [];
  const pages: (RemovedUnused | Error)[] = [
    { balances: [], keys: [], next: { createdAt: 1 as EpochMs, id: "bal_1" as BalanceId } },
    new Error("the database restarts"),
    { balances: [], keys: [], next: null },
  ];
  const store = {
    async removeUnused(_: EpochMs, from: BalanceCursor) {
      queries.push(from.id);
      const page = pages.shift()!;
      if (page instanceof Error) throw page;
      return page;
    },
  };
  const removal = new Retention({
    clock,
    keepDays: () => 30,
    deleteSlice: unusedSlices(store, { isInUse: () => false, forget() {} }),
    onDeleted() {},
    onFault: (error) => faults.push(error),
    pace: UNUSED_PACE,
  });
  const pass = async (ms: number) => {
    clock.advance(ms);
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  };
  await pass(5 * MINUTE_MS);
  await pass(MINUTE_MS);
  await pass(MINUTE_MS);
  expect(queries).toEqual(["", "bal_1", "bal_1"]);
  expect(faults).toHaveLength(1);
  await removal.stop();
});
