import type { CounterId } from "../../ledger/counter.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { JournalBooks, type JournalBooksOptions, readBack } from "./books.ts";
import type { Unapplied } from "./journal.ts";

/**
 * A node's journal and the store that it shares. The journal acknowledges, on the node's own disk, and what it
 * says is shipped; a start ships what the last life did not. While the store is out of reach the journal keeps
 * what it has.
 */
export class NodeBooks extends JournalBooks<NodeBooksOptions> {
  /** Ends that were shipped since start, and the batches they went in. */
  shipped = 0;
  batches = 0;

  /**
   * Ships what the journal says of the life before, its open holds ended at their last checkpoint. When it
   * resolves, the epoch of that life can be closed. Fails while the store is out of reach.
   */
  static async open(options: NodeBooksOptions): Promise<NodeBooks> {
    const { disk, store, node } = options;
    const before = readBack(disk, await store.reached(node));
    const books = new NodeBooks(options, PACE, before.nextFile);
    await books.recover(before);
    return books;
  }

  /** Starts following the ledger, in the epoch that has started. */
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
    const { store, node } = this.options;
    if (!(await store.mayForget())) return false;
    await this.journal.forgetBefore(before);
    await store.forgetReachedBefore(node, before);
    return true;
  }
}

export interface NodeBooksOptions extends JournalBooksOptions {
  readonly store: ShippedEnds;
  readonly node: string;
  /** Of the life before, while its journal is shipped; null for a node that nobody knows. */
  epoch: number | null;
}

/** Where nodes ship their ends to. */
export interface ShippedEnds {
  /**
   * Books a batch of a node's ends and the place up to which its journal is now known, all or nothing. An end that is booked already changes nothing, so shipping a journal again is safe. Throws
   * EpochFenced.
   */
  ship(node: string, epoch: number | null, batch: readonly Unapplied[]): Promise<void>;
  /** How far each of the node's journal files was shipped, in bytes. */
  reached(node: string): Promise<Map<number, number>>;
  /** Whether the journal need not keep what was shipped; false while the store might still lose that. */
  mayForget(): Promise<boolean>;
  forgetReachedBefore(node: string, file: number): Promise<void>;
}

/**
 * At some 100 µs an end in PostgreSQL, a transaction stays near 50 ms. Each costs the node about as much as
 * ten requests; a disk that is lost takes with it what waits.
 */
const PACE = { batch: 500, most: 500, afterMs: 200, behindMs: 0 };
