import type { Clock, EpochMs } from "../../units/clock.ts";
import { DAY_MS } from "../../units/clock.ts";
import { Rounds } from "../../units/rounds.ts";

/**
 * Deletes receipts, or rows of the log of changes, that are older than the operator wants them kept: once an hour, a slice at a time with
 * pauses between, because a slice holds SQLite's one write lock. If the process ends midway, the next start
 * goes on.
 */
export class Retention {
  private readonly slices: Rounds;
  /** Since it last had nothing to do. */
  private deleted = 0;

  constructor(private readonly options: RetentionOptions) {
    this.slices = new Rounds(options.clock, FIRST_MS, () => this.deleteSome());
  }

  /** Resolves when nothing is being deleted any more. */
  stop(): Promise<void> {
    return this.slices.stop();
  }

  private async deleteSome(): Promise<number> {
    const { clock, keepDays, fold, onDeleted, onFault } = this.options;
    const days = keepDays();
    let some = 0;
    try {
      if (days !== null) some = await fold((clock.now() - days * DAY_MS) as EpochMs);
    } catch (error) {
      onFault(error);
    }
    this.deleted += some;
    if (some === 0 && this.deleted > 0) {
      onDeleted(this.deleted);
      this.deleted = 0;
    }
    return some > 0 ? PAUSE_MS : EVERY_MS;
  }
}

export interface RetentionOptions {
  readonly clock: Clock;
  /** Null: for ever. Asked again for each slice. */
  readonly keepDays: () => number | null;
  /** Deletes some of what is from before then, and returns how many rows went. */
  readonly fold: (before: EpochMs) => Promise<number>;
  readonly onDeleted: (rows: number) => void;
  readonly onFault: (error: unknown) => void;
}

const FIRST_MS = 60_000;
const EVERY_MS = 3_600_000;
/** Some 5,000 receipts a second: more than a gateway makes that is busy day and night. */
const PAUSE_MS = 50;
