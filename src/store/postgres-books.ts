import type { CounterId } from "../ledger/counter.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { formatRecord } from "../ledger/record.ts";
import { Replay, recoveredEnd } from "../ledger/recovery.ts";
import type { Timer } from "../units/clock.ts";
import type { BooksOptions } from "./books.ts";
import { DurableJournal, journalFiles, readJournal, type Unapplied } from "./journal.ts";
import type { PostgresLedgerStore } from "./postgres-ledger-store.ts";

/**
 * A node's journal and PostgreSQL together. The journal acknowledges, on the node's own disk; what it says is shipped in
 * batches, and a start ships what the last life did not. While PostgreSQL is out of reach the journal keeps what it has.
 */
export class PostgresBooks {
  readonly journal: DurableJournal;
  private readonly timers = new Set<Timer>();
  /** A rotation is done with once everything before this file is shipped. */
  private retiring: number | null = null;
  private ledger: Ledger | null = null;
  private shipping: Promise<void> | null = null;
  private waiting: Timer | null = null;
  private closed = false;
  /** Ends that were shipped since start, and the batches they went in. */
  shipped = 0;
  batches = 0;

  private constructor(private readonly options: PostgresBooksOptions) {
    const { disk, clock, relaxed } = options;
    this.journal = new DurableJournal({
      disk,
      firstFile: (journalFiles(disk).at(-1) ?? 0) + 1,
      fileBytes: options.journalFileBytes,
      relaxed,
      defer: options.defer,
      onUnapplied: () => this.shipSoon(),
      after: (ms, run) => void clock.after(ms, run),
    });
  }

  /**
   * Ships what the journal says of the life before, its open holds ended at their last checkpoint. When it resolves, the
   * epoch of that life can be closed. Fails while PostgreSQL is out of reach.
   */
  static async open(options: PostgresBooksOptions): Promise<PostgresBooks> {
    const { store, node } = options;
    const { replay, unshipped } = await readBack(options);
    for (let from = 0; from < unshipped.length; from += SHIP_BATCH) {
      await store.ship(node, options.epoch, unshipped.slice(from, from + SHIP_BATCH));
    }
    const books = new PostgresBooks(options);
    for (const orphan of replay.orphans.values()) {
      const record = recoveredEnd(orphan, options.writeOffTokens, options.recoveredBody);
      books.journal.append(formatRecord(record), record);
    }
    if (!(await books.journal.flushed())) {
      throw new Error(
        `the journal cannot be written: ${books.journal.failure}. Free the disk, then start again.`,
      );
    }
    await books.shipAll();
    books.journal.forgetBefore(books.journal.currentFile);
    await store.forgetReachedBefore(node, books.journal.currentFile);
    options.onRecovered?.(replay.orphans.size);
    return books;
  }

  /** Starts following the ledger, in the epoch that has begun. */
  follow(ledger: Ledger, epoch: number, onForgotten: (counters: readonly CounterId[]) => void): void {
    this.ledger = ledger;
    this.options.epoch = epoch;
    this.every(CHECKPOINT_EVERY_MS, () => {
      ledger.checkpoint();
      this.journal.schedule();
      this.turnPage();
    });
    this.every(FORGET_EVERY_MS, () => {
      onForgotten(ledger.forgetIdle(this.shippedThrough, IDLE_MS));
    });
  }

  /** Resolves when everything that is durable now is in PostgreSQL; rejects when that cannot be reached. */
  async shipAll(): Promise<void> {
    const { durableNow } = this.journal;
    while (this.shippedThrough < durableNow) {
      if (this.shipping !== null) await this.shipping;
      else await this.shipBatch();
    }
  }

  /** Tries to ship the rest; what stays in the journal is shipped by the next start. True when nothing stayed. */
  async close(): Promise<boolean> {
    for (const timer of this.timers) timer.cancel();
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

  /** The journal's number up to which PostgreSQL's sums are complete. */
  private get shippedThrough(): number {
    const next = this.journal.unapplied(1)[0];
    return next === undefined ? this.journal.durableNow : next.sequence - 1;
  }

  /** Collects the ends of some milliseconds into one transaction. */
  private shipSoon(afterMs = SHIP_AFTER_MS): void {
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
      if (unappliedCount > 0) this.shipSoon(unappliedCount < SHIP_BATCH ? nextMs : hurryMs);
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

  private turnPage(): void {
    const { journal, options } = this;
    if (this.retiring === null) {
      if (journal.full && this.ledger !== null && journal.rotate(this.ledger.openRecords())) {
        this.retiring = journal.currentFile;
      }
      return;
    }
    const oldest = journal.unapplied(1)[0];
    if (!journal.headWritten || (oldest !== undefined && oldest.file < this.retiring)) return;
    journal.forgetBefore(this.retiring);
    void options.store.forgetReachedBefore(options.node, this.retiring).catch(options.onFault);
    this.retiring = null;
  }

  /** Whatever fails, for instance on a full disk, is tried again the next time. */
  private every(ms: number, run: () => void): void {
    const { timers, options } = this;
    let timer = options.clock.after(ms, again);
    timers.add(timer);
    function again(): void {
      timers.delete(timer);
      timer = options.clock.after(ms, again);
      timers.add(timer);
      try {
        run();
      } catch (error) {
        options.onFault(error);
      }
    }
  }
}

export interface PostgresBooksOptions extends Omit<BooksOptions, "store"> {
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
const CHECKPOINT_EVERY_MS = 1_000;
const FORGET_EVERY_MS = 60_000;
const IDLE_MS = 600_000;

async function readBack({
  disk,
  store,
  node,
}: PostgresBooksOptions): Promise<{ replay: Replay; unshipped: Unapplied[] }> {
  const replay = new Replay();
  const unshipped: Unapplied[] = [];
  const reached = await store.reached(node);
  for (const { record, file, bytes } of readJournal(disk)) {
    replay.add(record);
    if (record.kind === "terminal" && bytes > (reached.get(file) ?? 0)) {
      unshipped.push({ record, sequence: 0, file, bytes });
    }
  }
  return { replay, unshipped };
}
