import type { Ledger } from "../ledger/ledger.ts";
import type { Timer } from "../units/clock.ts";
import { JournalBooks, type JournalBooksOptions, readBack } from "./journal-books.ts";
import type { LedgerStore } from "./ledger-store.ts";

/**
 * Journal and database together: a start replays the one into the other, and from then on the database follows the
 * journal in small slices between requests, so that no transaction holds the event loop up.
 */
export class Books extends JournalBooks<BooksOptions> {
  private applying: Timer | null = null;
  private applyingAfterMs = 0;
  /** By the database, the last time. */
  private refused = false;

  /**
   * Brings the books up to date with what the journal says happened before the last end of the process: books what was
   * not yet applied, and ends every hold that was left open at its last checkpoint.
   */
  static async open(options: BooksOptions): Promise<Books> {
    const { disk, store } = options;
    const { replay, unapplied, nextFile } = readBack(disk, store.reached());
    for (let from = 0; from < unapplied.length; from += RECOVERY_SLICE) {
      store.apply(unapplied.slice(from, from + RECOVERY_SLICE));
    }
    const books = new Books(options, nextFile);
    await books.endOrphans(replay);
    books.applyAll();
    options.onRecovered?.(replay.orphans.size);
    // What does not come through now stays in the journal as well, and goes with its next page or the next start.
    if (store.checkpoint()) await books.forgetBefore(books.journal.currentFile);
    return books;
  }

  /** Starts following the ledger. */
  follow(ledger: Ledger): void {
    this.keepUp(ledger, () => {});
  }

  /** Books everything that is durable, now: for readers who must see their own writes. */
  applyAll(): void {
    while (this.journal.unappliedCount > 0) if (!this.applySlice()) return;
  }

  async close(): Promise<void> {
    await this.stopKeepingUp();
    await this.journal.close();
    this.applying?.cancel();
    this.applyAll();
    this.options.store.checkpoint();
  }

  /** Collects the ends of some time into one transaction, or as many as fit into one. */
  protected applySoon(): void {
    const isFull = this.journal.unappliedCount >= APPLY_SLICE;
    const afterMs = this.refused ? RETRY_MS : isFull ? BEHIND_MS : APPLY_AFTER_MS;
    if (this.applying !== null && this.applyingAfterMs <= afterMs) return;
    this.applying?.cancel();
    this.applyingAfterMs = afterMs;
    this.applying = this.options.clock.after(afterMs, () => {
      this.applying = null;
      this.refused = !this.applySlice();
      if (this.journal.unappliedCount > 0) this.applySoon();
    });
  }

  protected async retire(before: number): Promise<boolean> {
    const { store, checkpoint } = this.options;
    const through = checkpoint === undefined ? store.checkpoint() : await checkpoint();
    if (through) await this.forgetBefore(before);
    return through;
  }

  private async forgetBefore(file: number): Promise<void> {
    await this.journal.forgetBefore(file);
    this.options.store.forgetReachedBefore(file);
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
}

export interface BooksOptions extends JournalBooksOptions {
  readonly store: EndStore;
  /**
   * Makes everything applied so far durable in the database, off the event loop; false when it did not come through. Without
   * it, the store's own is used.
   */
  readonly checkpoint?: () => Promise<boolean>;
}

/** What the books need of the database; the simulator's forgets what was not checkpointed. */
export type EndStore = Pick<LedgerStore, "apply" | "reached" | "forgetReachedBefore" | "checkpoint">;

/** At some 7 µs an end, a slice stays below two milliseconds; half as many cost a quarter more each. */
const APPLY_SLICE = 256;
/** The more ends a transaction has, the more of them share each page that it writes. */
const APPLY_AFTER_MS = 100;
/** Between slices while ends come faster than that: the event loop has its turn, and the rest does not grow. */
const BEHIND_MS = 2;
/** After the database has refused. */
const RETRY_MS = 500;
const RECOVERY_SLICE = 2_000;
