import type { CounterId } from "../../ledger/counter.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { SqlLedgerStore } from "../ledger/sql-ledger-store.ts";
import type { FollowingBooks } from "../nodes/node-store.ts";
import { MAX_CHARTS, MAX_SPENDINGS, UsageReader } from "../usage/usage.ts";
import { type Bookkeeping, withMemory } from "./bookkeeping.ts";

/** Receipts, and what they add up to, read once what has ended is booked. */
export function bookedReads({ store, books, ledger, path, booked, known }: BookedReadsParts): BookedReads {
  const usage = new UsageReader(path, MAX_CHARTS);
  const spending = new UsageReader(path, MAX_SPENDINGS);
  return {
    unbooked: (id) => books.unbooked(id),
    credits: (balance, limit) => store.credits(balance, limit),
    async receipts(...page) {
      await booked();
      return store.receipts(...page);
    },
    async usage(of) {
      await booked();
      return usage.sums(of);
    },
    async keyActivity(of, isNext) {
      await booked();
      return usage.keyActivity(of, isNext);
    },
    async spending(of) {
      await booked();
      return spending.spending(of);
    },
    async audit() {
      await books.journal.flushed();
      await booked();
      const { appliedThrough } = books;
      return withMemory(await store.audit(), ledger, appliedThrough, await known());
    },
    stop() {
      usage.stop();
      spending.stop();
    },
  };
}

interface BookedReads
  extends Pick<
    Bookkeeping,
    "unbooked" | "credits" | "receipts" | "usage" | "keyActivity" | "spending" | "audit"
  > {
  stop(): void;
}

interface BookedReadsParts {
  readonly store: SqlLedgerStore;
  readonly books: FollowingBooks;
  readonly ledger: Ledger;
  /** What `UsageReader` reads. */
  readonly path: string;
  /** Resolves once what has ended is in the store. */
  booked(): Promise<void>;
  /** What the store knows that this process has spent of each counter. */
  known(): Promise<(id: CounterId) => number>;
}
