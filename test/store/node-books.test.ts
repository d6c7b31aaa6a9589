import { expect, test } from "bun:test";
import { JournalBooks, NODE_PACE } from "../../src/store/journal/books.ts";
import { ManualClock } from "../fakes/clock.ts";
import { SimulatedDisk } from "../sim/disk.ts";
import { end } from "./end-record.ts";

/** More would be for ever. */
const ENOUGH = 20;

test("a caller that waits for what has happened does not wait for what happens meanwhile", async () => {
  let batches = 0;
  const store = {
    async apply() {
      batches += 1;
      // Traffic goes on: while a batch is on its way, the next ends become durable.
      if (batches >= ENOUGH || books === null) return;
      books.journal.append(end(batches));
      await books.journal.flushed();
    },
    lastEpoch: async () => 1,
    reached: async () => new Map(),
    checkpoint: async () => true,
    forgetReachedBefore: async () => {},
  };
  let books: JournalBooks | null = null;
  const options = {
    disk: new SimulatedDisk(),
    store,
    pace: NODE_PACE,
    clock: new ManualClock(),
    relaxed: false,
    journalFileBytes: 1_000_000,
    writeOffTokens: 50,
    defer: (run: () => void) => void setImmediate(run),
    recoveredBody: () => "{}",
    onFault: (error: unknown) => {
      throw error;
    },
  };
  books = await JournalBooks.open(options);
  books.journal.append(end(0));
  await books.journal.flushed();
  await books.catchUp();
  expect(batches).toBeLessThan(ENOUGH);
  books.journal.append(end(-1));
  await books.journal.flushed();
  expect(books.journal.unappliedCount).toBeGreaterThan(0);
});
