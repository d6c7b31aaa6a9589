import type { Ledger } from "../../ledger/ledger.ts";
import type { LedgerStore } from "../ledger/sqlite-ledger-store.ts";
import { JournalBooks, type JournalBooksOptions, readBack } from "./books.ts";
import type { Unapplied } from "./journal.ts";

/** The journal of one process, and SQLite, which follows it. */
export class Books extends JournalBooks<BooksOptions> {
  /** `reached` is how far the database has come in each of the journal's files, in bytes. */
  static async open(options: BooksOptions, reached: ReadonlyMap<number, number>): Promise<Books> {
    const before = readBack(options.disk, reached);
    const books = new Books(options, PACE, before.nextFile);
    await books.recover(before);
    return books;
  }

  /** Starts following the ledger. */
  follow(ledger: Ledger): void {
    this.keepUp(ledger, () => {});
  }

  protected bring(batch: readonly Unapplied[]): Promise<void> {
    return this.options.store.apply(batch);
  }

  protected async retire(before: number): Promise<boolean> {
    const { store } = this.options;
    if (!(await store.checkpoint())) return false;
    await this.journal.forgetBefore(before);
    await store.forgetReachedBefore(before);
    return true;
  }

  override async close(): Promise<boolean> {
    const isAll = await super.close();
    // What does not come through is read from the journal again by the next start.
    await this.options.store.checkpoint().catch(this.options.onFault);
    return isAll;
  }
}

export interface BooksOptions extends JournalBooksOptions {
  readonly store: EndStore;
}

/** What the books need of the database; what each does is said at `LedgerStore`. */
export interface EndStore {
  apply(batch: readonly Unapplied[]): Promise<void>;
  checkpoint(): Promise<boolean>;
  forgetReachedBefore(file: number): Promise<void>;
}

/** The database on the event loop. */
export function onTheLoop(store: LedgerStore): EndStore {
  return {
    apply: async (batch) => store.apply(batch),
    checkpoint: async () => store.checkpoint(),
    forgetReachedBefore: async (file) => store.forgetReachedBefore(file),
  };
}

/**
 * Streams stand still for a quarter of a millisecond a batch; batches of 256 took 0.7 to 1.3, and a request's CPU was the
 * same. The most are as many requests as the loop hears of in one turn.
 */
const PACE = { batch: 64, most: 1_024, afterMs: 100, behindMs: 2 };
