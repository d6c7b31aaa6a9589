import type { Ledger } from "../ledger/ledger.ts";
import { formatRecord } from "../ledger/record.ts";
import { type Recovered, Replay, recoveredEnd } from "../ledger/recovery.ts";
import type { Clock, Timer } from "../units/clock.ts";
import type { Disk } from "./disk.ts";
import { DurableJournal, journalFiles, readJournal, type Unapplied } from "./journal.ts";
import type { LedgerStore } from "./ledger-store.ts";

/**
 * Journal and database together: a start replays the one into the other, and from then on the database follows the
 * journal in small slices between requests, so that no transaction holds the event loop up.
 */
export class Books {
  readonly journal: DurableJournal;
  private readonly timers = new Set<Timer>();
  /** A rotation is done with once everything before this file is applied. */
  private retiring: number | null = null;
  private ledger: Ledger | null = null;
  private applying: Timer | null = null;

  private constructor(private readonly options: BooksOptions) {
    const { disk, clock, relaxed } = options;
    this.journal = new DurableJournal({
      disk,
      firstFile: (journalFiles(disk).at(-1) ?? 0) + 1,
      fileBytes: options.journalFileBytes,
      relaxed,
      defer: options.defer,
      onUnapplied: () => this.applySoon(),
      after: (ms, run) => void clock.after(ms, run),
    });
  }

  /**
   * Brings the books up to date with what the journal says happened before the last end of the process: books what was
   * not yet applied, and ends every hold that was left open at its last checkpoint.
   */
  static async open(options: BooksOptions): Promise<Books> {
    const { replay, unapplied } = readBack(options);
    for (let from = 0; from < unapplied.length; from += RECOVERY_SLICE) {
      options.store.apply(unapplied.slice(from, from + RECOVERY_SLICE));
    }
    const books = new Books(options);
    await books.endOrphans(replay);
    options.store.checkpoint();
    books.journal.forgetBefore(books.journal.currentFile);
    options.store.forgetReachedBefore(books.journal.currentFile);
    return books;
  }

  /** Starts following the ledger: applies, checkpoints delivered tokens, turns the journal's page, forgets the idle. */
  follow(ledger: Ledger): void {
    this.ledger = ledger;
    this.every(CHECKPOINT_EVERY_MS, () => {
      ledger.checkpoint();
      this.journal.schedule();
      this.turnPage();
    });
    this.every(FORGET_EVERY_MS, () => ledger.forgetIdle(this.appliedThrough, IDLE_MS));
  }

  /** Books everything that is durable, now: for readers who must see their own writes. */
  applyAll(): void {
    while (this.journal.unappliedCount > 0) if (!this.applySlice()) return;
  }

  async close(): Promise<void> {
    for (const timer of this.timers) timer.cancel();
    await this.journal.close();
    this.applying?.cancel();
    this.applyAll();
    this.options.store.checkpoint();
  }

  /** The journal's number up to which the database's sums are complete. */
  private get appliedThrough(): number {
    const next = this.journal.unapplied(1)[0];
    return next === undefined ? this.journal.durableNow : next.sequence - 1;
  }

  private async endOrphans(replay: Replay): Promise<void> {
    const { writeOffTokens, recoveredBody } = this.options;
    for (const orphan of replay.orphans.values()) {
      const record = recoveredEnd(orphan, writeOffTokens, recoveredBody);
      this.journal.append(formatRecord(record), record);
    }
    if (!(await this.journal.flushed())) {
      throw new Error(
        `the journal cannot be written: ${this.journal.failure}. Free the disk, then start again.`,
      );
    }
    this.applyAll();
    this.options.onRecovered?.(replay.orphans.size);
  }

  /** Collects the ends of some milliseconds into one transaction. */
  private applySoon(): void {
    if (this.applying !== null) return;
    this.applying = this.options.clock.after(APPLY_AFTER_MS, () => {
      this.applying = null;
      this.applySlice();
      if (this.journal.unappliedCount > 0) this.applySoon();
    });
  }

  /** False when the database refused. */
  private applySlice(): boolean {
    const slice = this.journal.unapplied(APPLY_SLICE);
    try {
      this.options.store.apply(slice);
      this.journal.applied(slice.length);
      return true;
    } catch (error) {
      // The ends are safe in the journal; the next slice tries again.
      this.options.onFault(error);
      return false;
    }
  }

  private turnPage(): void {
    const { journal } = this;
    if (this.retiring === null) {
      if (journal.full && this.ledger !== null && journal.rotate(this.ledger.openRecords())) {
        this.retiring = journal.currentFile;
      }
      return;
    }
    const oldest = journal.unapplied(1)[0];
    if (!journal.headWritten || (oldest !== undefined && oldest.file < this.retiring)) return;
    this.options.store.checkpoint();
    journal.forgetBefore(this.retiring);
    this.options.store.forgetReachedBefore(this.retiring);
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

export interface BooksOptions {
  readonly disk: Disk;
  readonly store: EndStore;
  readonly clock: Clock;
  readonly relaxed: boolean;
  readonly journalFileBytes: number;
  readonly writeOffTokens: number;
  readonly defer: (run: () => void) => void;
  /** Writes the receipt of a request whose process died. */
  readonly recoveredBody: (recovered: Recovered) => string;
  readonly onRecovered?: (orphans: number) => void;
  readonly onFault: (error: unknown) => void;
}

/** What the books need of the database; the simulator's forgets what was not checkpointed. */
export type EndStore = Pick<LedgerStore, "apply" | "reached" | "forgetReachedBefore" | "checkpoint">;

/** At some 10 µs an end, a slice stays near a millisecond. */
const APPLY_SLICE = 128;
const APPLY_AFTER_MS = 20;
const RECOVERY_SLICE = 2_000;
const CHECKPOINT_EVERY_MS = 1_000;
const FORGET_EVERY_MS = 60_000;
const IDLE_MS = 600_000;

function readBack({ disk, store }: BooksOptions): { replay: Replay; unapplied: Unapplied[] } {
  const replay = new Replay();
  const unapplied: Unapplied[] = [];
  const reached = store.reached();
  for (const { record, file, bytes } of readJournal(disk)) {
    replay.add(record);
    if (record.kind === "terminal" && bytes > (reached.get(file) ?? 0)) {
      unapplied.push({ record, sequence: 0, file, bytes });
    }
  }
  return { replay, unapplied };
}
