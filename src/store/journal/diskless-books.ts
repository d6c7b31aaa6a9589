import type { CounterId } from "../../ledger/counter.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Clock } from "../../units/clock.ts";
import { StoreUnreachable } from "../../units/errors/bookkeeping.ts";
import type { PostgresHolds } from "./holds.ts";
import { CHECKPOINT_EVERY_MS, checkpoint, PeriodicTimers } from "./periodic-timers.ts";
import { PostgresJournal } from "./postgres-journal.ts";

/**
 * What a node keeps that has no disk: nothing. Its journal is in PostgreSQL, and what it left open is ended
 * by others.
 */
export class DisklessBooks {
  readonly journal: PostgresJournal;
  private readonly timers: PeriodicTimers;
  private epoch = 0;

  constructor({ store, node, ...options }: DisklessBooksOptions) {
    this.timers = new PeriodicTimers(options.clock, options.onFault);
    this.journal = new PostgresJournal({
      ...options,
      commit: (batch) => store.commit(node, this.epoch, batch),
    });
  }

  /** Starts following the ledger, in the epoch that has started. */
  follow(ledger: Ledger, epoch: number, onForgotten: (counters: readonly CounterId[]) => void): void {
    this.epoch = epoch;
    this.timers.every(CHECKPOINT_EVERY_MS, () => checkpoint(ledger, this.journal));
    this.timers.forgetIdle(ledger, () => this.appliedThrough, onForgotten);
  }

  /** The journal's number up to which PostgreSQL's sums are complete. */
  get appliedThrough(): number {
    return this.journal.durableNow;
  }

  /** Resolves when everything that happened so far is in PostgreSQL; rejects when that cannot be reached. */
  async catchUp(): Promise<void> {
    if (!(await this.journal.flushed()))
      throw new StoreUnreachable(`nothing is committed: ${this.journal.failure}`);
  }

  /** Its ends are in PostgreSQL once they are durable. */
  unbooked(): null {
    return null;
  }

  /** True: whatever could not be committed, those who close this node need not wait for it. */
  async close(): Promise<boolean> {
    this.timers.stop();
    await this.journal.flushed();
    this.journal.close();
    return true;
  }

  get shipped(): number {
    return this.journal.ends;
  }

  get batches(): number {
    return this.journal.syncs;
  }
}

export interface DisklessBooksOptions {
  readonly store: PostgresHolds;
  readonly node: string;
  readonly clock: Clock;
  /** Runs once everything of this turn of the loop has been appended. */
  readonly defer: (run: () => void) => void;
  readonly onFault: (error: unknown) => void;
}
