import type { CounterId } from "../ledger/counter.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Timer } from "../units/clock.ts";
import { JournalBooks, type JournalBooksOptions, readBack } from "./journal-books.ts";
import type { PostgresLedgerStore } from "./postgres-ledger-store.ts";

/**
 * A node's journal and PostgreSQL together. The journal acknowledges, on the node's own disk; what it says is shipped in
 * batches, and a start ships what the last life did not. While PostgreSQL is out of reach the journal keeps what it has.
 */
export class PostgresBooks extends JournalBooks<PostgresBooksOptions> {
  private shipping: Promise<void> | null = null;
  private waiting: Timer | null = null;
  private closed = false;
  /** Ends that were shipped since start, and the batches they went in. */
  shipped = 0;
  batches = 0;

  /**
   * Ships what the journal says of the life before, its open holds ended at their last checkpoint. When it resolves, the
   * epoch of that life can be closed. Fails while PostgreSQL is out of reach.
   */
  static async open(options: PostgresBooksOptions): Promise<PostgresBooks> {
    const { disk, store, node } = options;
    const { replay, unapplied, nextFile } = readBack(disk, await store.reached(node));
    for (let from = 0; from < unapplied.length; from += SHIP_BATCH) {
      await store.ship(node, options.epoch, unapplied.slice(from, from + SHIP_BATCH));
    }
    const books = new PostgresBooks(options, nextFile);
    await books.endOrphans(replay);
    await books.shipAll();
    await books.journal.forgetBefore(books.journal.currentFile);
    await store.forgetReachedBefore(node, books.journal.currentFile);
    options.onRecovered?.(replay.orphans.size);
    return books;
  }

  /** Starts following the ledger, in the epoch that has begun. */
  follow(ledger: Ledger, epoch: number, onForgotten: (counters: readonly CounterId[]) => void): void {
    this.options.epoch = epoch;
    this.keepUp(ledger, onForgotten);
  }

  /** Resolves when everything that is durable now is in PostgreSQL; rejects when that cannot be reached. */
  async shipAll(): Promise<void> {
    const { durableNow } = this.journal;
    while (this.appliedThrough < durableNow) {
      if (this.shipping !== null) await this.shipping;
      else await this.shipBatch();
    }
  }

  /** Tries to ship the rest; what stays in the journal is shipped by the next start. True when nothing stayed. */
  async close(): Promise<boolean> {
    await this.stopKeepingUp();
    this.closed = true;
    this.waiting?.cancel();
    await this.journal.close();
    try {
      await this.shipAll();
      return true;
    } catch (error) {
      this.options.onFault(error);
      return false;
    }
  }

  /** Collects the ends of some milliseconds into one transaction. */
  protected applySoon(afterMs = SHIP_AFTER_MS): void {
    if (this.waiting !== null || this.closed) return;
    this.waiting = this.options.clock.after(afterMs, async () => {
      let nextMs = SHIP_AFTER_MS;
      let hurryMs = 0;
      try {
        await (this.shipping ?? this.shipBatch());
      } catch (error) {
        this.options.onFault(error);
        nextMs = hurryMs = RETRY_MS;
      }
      this.waiting = null;
      const { unappliedCount } = this.journal;
      if (unappliedCount > 0) this.applySoon(unappliedCount < SHIP_BATCH ? nextMs : hurryMs);
    });
  }

  private shipBatch(): Promise<void> {
    const { options, journal } = this;
    const batch = journal.unapplied(SHIP_BATCH);
    this.shipping = options.store
      .ship(options.node, options.epoch, batch)
      .then(() => {
        journal.applied(batch.length);
        this.shipped += batch.length;
        this.batches += 1;
      })
      .finally(() => {
        this.shipping = null;
      });
    return this.shipping;
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

/** At some 100 µs an end in PostgreSQL, a transaction stays near 50 ms. */
const SHIP_BATCH = 500;
/** Each transaction costs the node about as much as ten requests; a disk that is lost takes so much with it. */
const SHIP_AFTER_MS = 200;
const RETRY_MS = 500;
