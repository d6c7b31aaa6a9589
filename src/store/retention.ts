import { type Clock, DAY_MS, type EpochMs, HOUR_MS } from "../units/clock.ts";
import { Rounds } from "../units/rounds.ts";

/**
 * Deletes what is older than the operator wants it kept, now and then: a slice at a time with pauses between, because a
 * slice holds SQLite's one write lock. If the process ends midway, the next start goes on.
 */
export class Retention {
  private readonly slices: Rounds;
  /** Since it last was at the end. */
  private deleted: Record<string, number> = {};

  constructor(private readonly options: RetentionOptions) {
    this.slices = new Rounds(options.clock, options.pace.firstMs, () => this.deleteSome());
  }

  /** Resolves when nothing is being deleted any more. */
  stop(): Promise<void> {
    return this.slices.stop();
  }

  private async deleteSome(): Promise<number> {
    const { clock, keepDays, deleteSlice, onDeleted, onFault, pace } = this.options;
    const days = keepDays();
    let nextMs = pace.everyMs;
    try {
      const slice = days === null ? null : await deleteSlice((clock.now() - days * DAY_MS) as EpochMs);
      for (const [kind, rows] of Object.entries(slice?.rows ?? {}))
        this.deleted[kind] = (this.deleted[kind] ?? 0) + rows;
      if (slice?.isLast === false) return PAUSE_MS;
    } catch (error) {
      onFault(error);
      nextMs = pace.retryMs;
    }
    if (Object.values(this.deleted).some((rows) => rows > 0)) onDeleted(this.deleted);
    this.deleted = {};
    return nextMs;
  }
}

export interface RetentionOptions {
  readonly clock: Clock;
  /** Null: for ever. Asked again for each slice. */
  readonly keepDays: () => number | null;
  /** Deletes some of what is from before then. */
  readonly deleteSlice: (before: EpochMs) => Promise<DeletedSlice>;
  readonly onDeleted: (rows: DeletedSlice["rows"]) => void;
  readonly onFault: (error: unknown) => void;
  readonly pace: RetentionPace;
}

interface DeletedSlice {
  /** How many went, by what they were. */
  readonly rows: Readonly<Record<string, number>>;
  readonly isLast: boolean;
}

export interface RetentionPace {
  readonly firstMs: number;
  readonly everyMs: number;
  /** After the store refused. */
  readonly retryMs: number;
}

export const HOURLY: RetentionPace = { firstMs: 60_000, everyMs: HOUR_MS, retryMs: HOUR_MS };
/** Some 5,000 receipts a second: more than a gateway makes that is busy day and night. */
const PAUSE_MS = 50;

/** Slices of one kind of rows, until one is empty. */
export const slicesOf =
  (kind: string, fold: (before: EpochMs) => Promise<number>): RetentionOptions["deleteSlice"] =>
  async (before) => {
    const rows = await fold(before);
    return { rows: { [kind]: rows }, isLast: rows === 0 };
  };
