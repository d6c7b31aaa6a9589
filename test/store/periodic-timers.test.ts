import { describe, expect, test } from "bun:test";
import type { Ledger } from "../../src/ledger/ledger.ts";
import { disklessBooks } from "../../src/store/journal/diskless-books.ts";
import { checkpoint, PeriodicTimers } from "../../src/store/journal/periodic-timers.ts";
import { ManualClock } from "../fakes/clock.ts";
import { booksOn, NOTHING_OPEN } from "./open-books.ts";

describe("a beat that fails is reported and runs again the next time", () => {
  const FAILING: Record<string, () => void | Promise<void>> = {
    "it throws": () => {
      throw new Error("the disk is full");
    },
    "it rejects": async () => {
      throw new Error("the disk is full");
    },
  };
  test.each(Object.entries(FAILING))("%s", async (_, run) => {
    const clock = new ManualClock();
    const faults: unknown[] = [];
    new PeriodicTimers(clock, (error) => faults.push(error)).every(1_000, run);
    clock.advance(2_000);
    await Bun.sleep(0);
    expect(faults).toEqual([new Error("the disk is full"), new Error("the disk is full")]);
  });
});

describe("a count of delivered tokens that fails is reported, and the next checkpoint is written", () => {
  function uncountable() {
    const written: number[] = [];
    const ledger = {
      ...NOTHING_OPEN,
      checkpoint: () => written.push(clock.elapsedMs()),
      countDelivered: () => Promise.reject(new Error("the thread has died")),
    } as unknown as Ledger;
    const clock = new ManualClock();
    const faults: unknown[] = [];
    return { ledger, clock, faults, written, onFault: (error: unknown) => void faults.push(error) };
  }

  test("on SQLite", async () => {
    const { ledger, clock, faults, written, onFault } = uncountable();
    const books = await booksOn(clock, { onFault });
    books.follow(ledger);
    clock.advance(2_000);
    await Bun.sleep(0);
    expect([written, faults.length]).toEqual([[1_000, 2_000], 2]);
  });

  test("on PostgreSQL", async () => {
    const { ledger, clock, faults, written, onFault } = uncountable();
    const store = { commit: async () => {} } as never;
    const books = disklessBooks({ store, node: "n", clock, defer: queueMicrotask, onFault });
    books.follow(ledger, 1, () => {});
    clock.advance(2_000);
    await Bun.sleep(0);
    expect([written, faults.length]).toEqual([[1_000, 2_000], 2]);
    await books.close();
  });
});

test.each([
  ["once where nothing has to be counted", null, 1],
  ["again once what came is counted", Promise.resolve(), 2],
])("a checkpoint is written %s", async (_, counting, times) => {
  let written = 0;
  let scheduled = 0;
  const ledger = { checkpoint: () => void (written += 1), countDelivered: () => counting };
  await checkpoint(ledger, { schedule: () => void (scheduled += 1) });
  expect([written, scheduled]).toEqual([times, times]);
});
