import type { CounterId } from "../../ledger/counter.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { type Recovered, Replay, recoveredEnd } from "../../ledger/recovery.ts";
import type { Clock, Timer } from "../../units/clock.ts";
import { StoreUnreachable } from "../../units/errors/bookkeeping.ts";
import type { ReceiptId } from "../../units/id.ts";
import { type StoredReceipt, storedReceipt } from "../ledger/receipts.ts";
import type { Disk } from "./disk.ts";
import {
  type Damage,
  DurableJournal,
  fileName,
  type JournalOptions,
  journalFiles,
  readJournal,
  spareFiles,
  type Unapplied,
} from "./journal.ts";
import { CHECKPOINT_EVERY_MS, PeriodicTimers } from "./periodic-timers.ts";

/**
 * Journal and database together: a start replays the one into the other, and from then on the database
 * follows the journal in batches, which nobody waits for. The journal acknowledges, on the process's own disk; a node's
 * ends are shipped to the store that nodes share. While that is out of reach the journal keeps what it has.
 */
export class JournalBooks {
  readonly journal: DurableJournal;
  private readonly timers: PeriodicTimers;
  /** All open holds, whichever file they were first written to, are also in this file or in a later one. */
  private holdsFrom = 0;
  /** Files before this one are gone. */
  private retired = 0;
  private retiring: Promise<void> | null = null;
  private ledger: Ledger | null = null;
  private next: Timer | null = null;
  private nextAfterMs = 0;
  private booking: Promise<void> | null = null;
  /** Whether the database refused the last batch. */
  private refused = false;
  private closed = false;
  private readonly pace: Pace;
  /** That of the life before, while its journal is read. */
  private epoch: number | null = null;
  /** Ends that were booked since start, and the batches they went in. */
  shipped = 0;
  batches = 0;

  private constructor(
    private readonly options: BooksOptions,
    firstFile: number,
  ) {
    this.pace = options.pace ?? LOOP_PACE;
    const { disk, clock, relaxed } = options;
    this.timers = new PeriodicTimers(clock, options.onFault);
    this.journal = new DurableJournal({
      disk,
      firstFile,
      fileBytes: options.journalFileBytes,
      relaxed,
      defer: options.defer,
      onUnapplied: () => this.scheduleBatch(),
      onDisk: options.onDisk,
      after: (ms, run) => void clock.after(ms, run),
    });
  }

  /**
   * Books what the journal says of the life before, its open holds ended at their last checkpoint: when it resolves, the
   * epoch of that life can be closed. Fails while the database refuses.
   */
  static async open(options: BooksOptions): Promise<JournalBooks> {
    const before = readBack(options.disk, await options.store.reached());
    const books = new JournalBooks(options, before.nextFile);
    books.epoch = await options.store.lastEpoch();
    await books.recover(before);
    return books;
  }

  /** Starts following the ledger, a node's in the epoch that has started. */
  follow(
    ledger: Ledger,
    epoch: number | null = null,
    onForgotten: (counters: readonly CounterId[]) => void = () => {},
  ): void {
    this.epoch = epoch;
    this.ledger = ledger;
    this.timers.follow(ledger, this.journal, () => this.appliedThrough, onForgotten);
    this.timers.every(CHECKPOINT_EVERY_MS, () => this.turnPage());
  }

  /** The journal's sequence number up to which the database's sums are complete. */
  get appliedThrough(): number {
    const next = this.journal.unapplied(1)[0];
    return next === undefined ? this.journal.durableNow : next.sequence - 1;
  }

  /** Resolves when the database has everything that is durable now; rejects when it refuses. */
  async catchUp(): Promise<void> {
    const { durableNow } = this.journal;
    while (this.appliedThrough < durableNow) await (this.booking ?? this.bookBatch());
  }

  unbooked(receipt: ReceiptId): StoredReceipt | null {
    const end = this.journal.unappliedEnd(receipt);
    return end === null ? null : storedReceipt(end);
  }

  /**
   * Tries to book the rest; what stays in the journal is booked by the next start. True when nothing stayed.
   */
  async close(): Promise<boolean> {
    this.timers.stop();
    await this.retiring;
    this.closed = true;
    this.next?.cancel();
    await this.journal.close();
    const { store, onFault } = this.options;
    try {
      await this.catchUp();
    } catch (error) {
      onFault(error);
      return false;
    }
    // What does not come through is read from the journal again by the next start.
    await store.checkpoint().catch(onFault);
    return true;
  }

  /**
   * Books what the previous run had not booked, and ends every hold that it left open at its last checkpoint.
   */
  private async recover({ replay, unapplied, damages, cutShort }: ReadBack): Promise<void> {
    const { disk, writeOffTokens, recoveredBody, onRecovered, onDamaged, onCutShort } = this.options;
    for (const cut of cutShort) onCutShort?.(cut);
    for (const damage of damages) {
      disk.keep(damage.file, damage.keptAs);
      onDamaged?.(damage);
    }
    for (let from = 0; from < unapplied.length; from += RECOVERY_BATCH) {
      await this.book(unapplied.slice(from, from + RECOVERY_BATCH));
    }
    for (const orphan of replay.orphans.values()) {
      const record = recoveredEnd(orphan, writeOffTokens, recoveredBody);
      this.journal.append(record);
    }
    if (!(await this.journal.flushed())) {
      throw new StoreUnreachable(
        `the journal cannot be written: ${this.journal.failure}. Free disk space, then start the gateway again.`,
      );
    }
    await this.catchUp();
    onRecovered?.(replay.orphans.size);
  }

  /** Collects the ends of some time into one batch, or as many as fit into one. */
  private scheduleBatch(): void {
    const { journal, pace } = this;
    if (this.closed || this.booking !== null || journal.unappliedCount === 0) return;
    const isFull = journal.unappliedCount >= pace.batch;
    const afterMs = this.refused ? RETRY_MS : isFull ? pace.behindMs : pace.afterMs;
    if (this.next !== null && this.nextAfterMs <= afterMs) return;
    this.next?.cancel();
    this.nextAfterMs = afterMs;
    this.next = this.options.clock.after(afterMs, () => {
      this.next = null;
      if (this.booking === null) this.bookBatch().catch(this.options.onFault);
    });
  }

  /** One at a time: nobody calls it while `booking`. */
  private bookBatch(): Promise<void> {
    this.booking = this.bookOldest().finally(() => {
      this.booking = null;
      this.scheduleBatch();
    });
    return this.booking;
  }

  private async bookOldest(): Promise<void> {
    const { journal, pace } = this;
    // Where more than a batch end in each turn of the loop, they would only become more.
    const several = Math.min(journal.unappliedCount >> 1, pace.most);
    const batch = journal.unapplied(Math.max(pace.batch, several));
    // Until it says otherwise.
    this.refused = true;
    await this.book(batch);
    this.refused = false;
    journal.applied(batch.length);
  }

  private async book(batch: readonly Unapplied[]): Promise<void> {
    await this.options.store.apply(batch, this.epoch);
    this.shipped += batch.length;
    this.batches += 1;
  }

  /**
   * Begins the next file when this one is full, however long the older ones have to stay (for instance while
   * a backup reads the database).
   */
  private turnPage(): void {
    const { journal, ledger } = this;
    if (journal.headWritten) this.holdsFrom = journal.currentFile;
    const oldest = journal.unapplied(1)[0]?.file ?? this.holdsFrom;
    const before = Math.min(this.holdsFrom, oldest);
    if (before > this.retired && this.retiring === null) this.retiring = this.retireSome(before);
    // Last, because a full disk may refuse the next file until the old ones are gone.
    if (journal.full && ledger !== null) journal.rotate(() => ledger.openRecords());
  }

  /** Removes the files before this one, all of which are booked, once the database cannot lose that any more. */
  private async retireSome(before: number): Promise<void> {
    const { store, onFault } = this.options;
    try {
      if (!(await store.checkpoint())) return;
      await this.journal.forgetBefore(before);
      await store.forgetReachedBefore(before);
      this.retired = before;
    } catch (error) {
      onFault(error);
    } finally {
      this.retiring = null;
    }
  }
}

export interface BooksOptions {
  readonly disk: Disk;
  readonly store: EndStore;
  /** That of the event loop, unless it says otherwise. */
  readonly pace?: Pace;
  readonly clock: Clock;
  readonly relaxed: boolean;
  readonly journalFileBytes: number;
  readonly writeOffTokens: number;
  readonly defer: (run: () => void) => void;
  /** Writes the receipt of a request whose process died. */
  readonly recoveredBody: (recovered: Recovered) => string;
  readonly onRecovered?: (orphans: number) => void;
  readonly onDamaged?: (damage: Damage) => void;
  readonly onCutShort?: (cutShort: CutShort) => void;
  readonly onDisk?: JournalOptions["onDisk"];
  readonly onFault: (error: unknown) => void;
}

/** How a database follows its journal. */
export interface Pace {
  /** As many ends are booked together; of more than twice as many half, but no more than `most`. */
  readonly batch: number;
  readonly most: number;
  /** The longest that an end waits for others. */
  readonly afterMs: number;
  /** The pause between batches while ends arrive faster than that, so that the queue does not grow. */
  readonly behindMs: number;
}

/** After the database has refused. */
const RETRY_MS = 500;
const RECOVERY_BATCH = 2_000;

/** What the journal says of the previous run. */
export interface ReadBack {
  readonly replay: Replay;
  readonly unapplied: readonly Unapplied[];
  readonly damages: readonly Damage[];
  readonly cutShort: readonly CutShort[];
  readonly nextFile: number;
}

/**
 * A file that ends before what the database has booked of it, so it was truncated, emptied or deleted since. What it held
 * behind that is lost: the requests of the last moments, and holds that were open.
 */
export interface CutShort {
  readonly file: string;
  readonly bookedBytes: number;
  /** Up to the last whole line; 0 where the file is gone. */
  readonly foundBytes: number;
}

/**
 * `reached` is how far each file had been booked, in bytes. A file's number is never used again, even if the
 * files were lost: new records would be taken for booked ones, and a reused file's old lines for new ones.
 */
function readBack(disk: Disk, reached: ReadonlyMap<number, number>): ReadBack {
  const replay = new Replay();
  const unapplied: Unapplied[] = [];
  const damages: Damage[] = [];
  const found = new Map<number, number>();
  for (const { record, file, bytes } of readJournal(disk, (damage) => damages.push(damage))) {
    replay.add(record);
    found.set(file, bytes);
    if (record.kind === "terminal" && bytes > (reached.get(file) ?? 0)) {
      unapplied.push({ record, sequence: 0, file, bytes });
    }
  }
  const files = journalFiles(disk);
  const last = Math.max(0, ...files, ...spareFiles(disk), ...reached.keys());
  return { replay, unapplied, damages, cutShort: cutShort(files, found, reached), nextFile: last + 1 };
}

function cutShort(
  files: readonly number[],
  found: ReadonlyMap<number, number>,
  reached: ReadonlyMap<number, number>,
): CutShort[] {
  const newest = Math.max(0, ...files);
  return [...reached].flatMap(([file, bookedBytes]) => {
    const foundBytes = found.get(file) ?? 0;
    // A file goes once it is booked, a moment before the database forgets it; a newer one is there then.
    const isRetired = !files.includes(file) && newest > file;
    return foundBytes >= bookedBytes || isRetired ? [] : [{ file: fileName(file), bookedBytes, foundBytes }];
  });
}

/** Where the ends of a journal are booked: see `SqlLedgerStore`. */
export interface EndStore {
  apply(batch: readonly Unapplied[], epoch: number | null): Promise<void>;
  /** The life of a node that the journal is of; null for a node that nobody knows, and for the only process. */
  lastEpoch(): Promise<number | null>;
  /** How far each of the journal's files is booked, in bytes. */
  reached(): Promise<ReadonlyMap<number, number>>;
  /** Whether the journal need not keep what was booked; false while the database might still lose that. */
  checkpoint(): Promise<boolean>;
  forgetReachedBefore(file: number): Promise<void>;
}

/**
 * Streams stand still for a quarter of a millisecond a batch; batches of 256 took 0.7 to 1.3, and a request's CPU was the
 * same. At most as many requests as the loop receives in one turn.
 */
const LOOP_PACE: Pace = { batch: 64, most: 1_024, afterMs: 100, behindMs: 2 };

/**
 * At some 100 µs an end in PostgreSQL, a transaction stays near 50 ms. Each costs the node about as much as
 * ten requests; a disk that is lost takes with it what waits.
 */
export const NODE_PACE: Pace = { batch: 500, most: 500, afterMs: 200, behindMs: 0 };
