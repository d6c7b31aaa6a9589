import { expect, test } from "bun:test";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import { Books } from "../../src/store/books.ts";
import type { Unapplied } from "../../src/store/journal.ts";
import { ManualClock } from "../fakes/clock.ts";
import { SimulatedDisk } from "../sim/disk.ts";

const end = (name: number) =>
  ({
    kind: "terminal",
    receipt: `rcpt_${name}`,
    charged: 1,
    counters: [],
    allowances: [],
    body: "{}",
  }) as unknown as LedgerRecord;

/** A busy core settles half as many a second. */
const RATE_PER_MS = 20;

test("the database keeps up with more ends than a core can settle, in slices that are short", async () => {
  const clock = new ManualClock();
  const slices: number[] = [];
  const books = await Books.open({
    disk: new SimulatedDisk(),
    store: {
      apply: (batch: readonly Unapplied[]) => void slices.push(batch.length),
      reached: () => new Map(),
      forgetReachedBefore() {},
      checkpoint() {},
    },
    clock,
    relaxed: false,
    journalFileBytes: 1e9,
    writeOffTokens: 50,
    defer: queueMicrotask,
    recoveredBody: () => "{}",
    onFault(error) {
      throw error;
    },
  });
  let most = 0;
  for (let ms = 0; ms < 1_000; ms++) {
    for (let one = 0; one < RATE_PER_MS; one++) books.journal.append(end(ms * RATE_PER_MS + one));
    await books.journal.flushed();
    clock.advance(1);
    most = Math.max(most, books.journal.unappliedCount);
  }
  expect(slices.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(980 * RATE_PER_MS);
  expect(most).toBeLessThan(50 * RATE_PER_MS);
  expect(Math.max(...slices)).toBeLessThanOrEqual(256);
});
