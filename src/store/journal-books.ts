import type { CounterId } from "../ledger/counter.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type Recovered, Replay, recoveredEnd } from "../ledger/recovery.ts";
import type { Clock } from "../units/clock.ts";
import { Beats, CHECKPOINT_EVERY_MS, FORGET_EVERY_MS, IDLE_MS } from "./beats.ts";
import type { Disk } from "./disk.ts";
import { DurableJournal, journalFiles, readJournal, spareFiles, type Unapplied } from "./journal.ts";

/**
 * What every database that follows a journal has in common: ends that were lost sight of are written, the ledger is
 * followed, and a page is turned once the database has all that stands on the older ones. How the ends get into the
 * database is each one's own.
 */
export abstract class JournalBooks<Options extends JournalBooksOptions> {
  readonly journal: DurableJournal;
  private readonly beats: Beats;
  /** A rotation is done with once everything before this file is in the database. */
  private retiring: number | null = null;
  private going: Promise<void> | null = null;
  private ledger: Ledger | null = null;

  protected constructor(
    protected readonly options: Options,
    firstFile: number,
  ) {
    const { disk, clock, relaxed } = options;
    this.beats = new Beats(clock, options.onFault);
    this.journal = new DurableJournal({
      disk,
      firstFile,
      fileBytes: options.journalFileBytes,
      relaxed,
      defer: options.defer,
      onUnapplied: () => this.applySoon(),
      after: (ms, run) => void clock.after(ms, run),
    });
  }

  /** Ends are waiting to be brought into the database. */
  protected abstract applySoon(): void;

  /** Removes the files before this one, which the database has been told all of; false while it may forget that again. */
  protected abstract retire(before: number): Promise<boolean>;

  /** The journal's number up to which the database's sums are complete. */
  get appliedThrough(): number {
    const next = this.journal.unapplied(1)[0];
    return next === undefined ? this.journal.durableNow : next.sequence - 1;
  }

  /** Ends every hold that was left open at its last checkpoint. */
  protected async endOrphans(replay: Replay): Promise<void> {
    const { writeOffTokens, recoveredBody } = this.options;
    for (const orphan of replay.orphans.values()) {
      const record = recoveredEnd(orphan, writeOffTokens, recoveredBody);
      this.journal.append(record);
    }
    if (!(await this.journal.flushed())) {
      throw new Error(
        `the journal cannot be written: ${this.journal.failure}. Free the disk, then start again.`,
      );
    }
  }

  /** Checkpoints delivered tokens, turns the journal's page, forgets the idle. */
  protected keepUp(ledger: Ledger, onForgotten: (counters: readonly CounterId[]) => void): void {
    this.ledger = ledger;
    this.beats.every(CHECKPOINT_EVERY_MS, () => {
      ledger.checkpoint();
      this.journal.schedule();
      this.turnPage();
    });
    this.beats.every(FORGET_EVERY_MS, () => onForgotten(ledger.forgetIdle(this.appliedThrough, IDLE_MS)));
  }

  protected async stopKeepingUp(): Promise<void> {
    this.beats.stop();
    await this.going;
  }

  /** However long the last page stays, for instance while a backup reads the database: the next is begun when this one is full. */
  private turnPage(): void {
    const { journal } = this;
    if (journal.full && this.ledger !== null && journal.rotate(this.ledger.openRecords())) {
      this.retiring = journal.currentFile;
    }
    const { retiring } = this;
    if (retiring === null || this.going !== null || !journal.headWritten) return;
    const oldest = journal.unapplied(1)[0];
    if (oldest !== undefined && oldest.file < retiring) return;
    this.going = this.retired(retiring);
  }

  private async retired(before: number): Promise<void> {
    try {
      if ((await this.retire(before)) && this.retiring === before) this.retiring = null;
    } catch (error) {
      this.options.onFault(error);
    } finally {
      this.going = null;
    }
  }
}

export interface JournalBooksOptions {
  readonly disk: Disk;
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

/**
 * What the journal says of the life before; `reached` is how far the database had come in each file, in bytes. A file's
 * number is never used again, not even where the files were lost: what is written would be taken for booked, and what a file
 * holds of its former number for written.
 */
export function readBack(
  disk: Disk,
  reached: ReadonlyMap<number, number>,
): { replay: Replay; unapplied: Unapplied[]; nextFile: number } {
  const replay = new Replay();
  const unapplied: Unapplied[] = [];
  for (const { record, file, bytes } of readJournal(disk)) {
    replay.add(record);
    if (record.kind === "terminal" && bytes > (reached.get(file) ?? 0)) {
      unapplied.push({ record, sequence: 0, file, bytes });
    }
  }
  const last = Math.max(0, ...journalFiles(disk), ...spareFiles(disk), ...reached.keys());
  return { replay, unapplied, nextFile: last + 1 };
}
