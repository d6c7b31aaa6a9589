import type { CounterId } from "../../ledger/counter.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { JournalBooks, type JournalBooksOptions, readBack } from "../journal/books.ts";
import type { Unapplied } from "../journal/journal.ts";
import type { PostgresLedgerStore } from "./ledger-store.ts";

/**
 * A node's journal and PostgreSQL. The journal acknowledges, on the node's own disk, and what it says is
 * shipped; a start ships what the last life did not. While PostgreSQL is out of reach the journal keeps what
 * it has.
 */
export class PostgresBooks extends JournalBooks<PostgresBooksOptions> {
  /** Ends that were shipped since start, and the batches they went in. */
  shipped = 0;
  batches = 0;

  /**
   * Ships what the journal says of the life before, its open holds ended at their last checkpoint. When it
   * resolves, the epoch of that life can be closed. Fails while PostgreSQL is out of reach.
   */
  static async open(options: PostgresBooksOptions): Promise<PostgresBooks> {
    const { disk, store, node } = options;
    const before = readBack(disk, await store.reached(node));
    const books = new PostgresBooks(options, PACE, before.nextFile);
    await books.recover(before);
    return books;
  }

  /** Starts following the ledger, in the epoch that has begun. */
  follow(ledger: Ledger, epoch: number, onForgotten: (counters: readonly CounterId[]) => void): void {
    this.options.epoch = epoch;
    this.keepUp(ledger, onForgotten);
  }

  protected async bring(batch: readonly Unapplied[]): Promise<void> {
    const { store, node, epoch } = this.options;
    await store.ship(node, epoch, batch);
    this.shipped += batch.length;
    this.batches += 1;
  }

  protected async retire(before: number): Promise<boolean> {
    const { options, journal } = this;
    await journal.forgetBefore(before);
    await options.store.forgetReachedBefore(options.node, before);
    return true;
  }
}

export interface PostgresBooksOptions extends JournalBooksOptions {
  readonly store: PostgresLedgerStore;
  readonly node: string;
  /** Of the life before, while its journal is shipped; null for a node that nobody knows. */
  epoch: number | null;
}

/**
 * At some 100 µs an end in PostgreSQL, a transaction stays near 50 ms. Each costs the node about as much as
 * ten requests; a disk that is lost takes with it what waits.
 */
const PACE = { batch: 500, afterMs: 200, behindMs: 0 };
