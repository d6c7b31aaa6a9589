import type { Ledger } from "../../src/ledger/ledger.ts";
import { type BooksOptions, type EndStore, JournalBooks } from "../../src/store/journal/books.ts";
import type { ManualClock } from "../fakes/clock.ts";
import { SimulatedDisk } from "../sim/disk.ts";

export const NO_STORE: EndStore = {
  apply: async () => {},
  lastEpoch: async () => null,
  reached: async () => new Map(),
  forgetReachedBefore: async () => {},
  checkpoint: async () => true,
};

/** Books over a disk in memory; a fault fails the test, unless it says what becomes of faults. */
export const booksOn = (clock: ManualClock, more: Partial<BooksOptions>) =>
  JournalBooks.open({
    disk: new SimulatedDisk(),
    store: NO_STORE,
    clock,
    relaxed: false,
    journalFileBytes: 1e9,
    writeOffTokens: 50,
    defer: queueMicrotask,
    recoveredBody: () => "{}",
    onFault(error) {
      throw error;
    },
    ...more,
  });

export const NOTHING_OPEN = {
  checkpoint() {},
  countDelivered: () => null,
  openRecords: () => [],
  forgetIdle: () => [],
  counters: { isCrowded: false },
} as unknown as Ledger;
