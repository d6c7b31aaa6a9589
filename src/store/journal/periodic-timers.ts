import type { CounterId } from "../../ledger/counter.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Clock, Timer } from "../../units/clock.ts";

/**
 * Runs what books do periodically. Whatever fails, for instance on a full disk, is tried again the next time.
 */
export class PeriodicTimers {
  private readonly timers = new Set<Timer>();

  constructor(
    private readonly clock: Pick<Clock, "after">,
    private readonly onFault: (error: unknown) => void,
  ) {}

  every(ms: number, run: () => void | Promise<void>): void {
    const { timers, clock, onFault } = this;
    let timer = clock.after(ms, again);
    timers.add(timer);
    function again(): void {
      timers.delete(timer);
      timer = clock.after(ms, again);
      timers.add(timer);
      try {
        run()?.catch(onFault);
      } catch (error) {
        onFault(error);
      }
    }
  }

  /**
   * Journals how far streams have got, and forgets counters that were not used for a while, values of tags sooner where there
   * are too many of them.
   */
  follow(
    ledger: Ledger,
    journal: { schedule(): void },
    appliedThrough: () => number,
    onForgotten: (counters: readonly CounterId[]) => void,
  ): void {
    this.every(CHECKPOINT_EVERY_MS, () => checkpoint(ledger, journal));
    const forget = () => onForgotten(ledger.forgetIdle(appliedThrough(), IDLE_MS));
    this.every(FORGET_EVERY_MS, forget);
    this.every(CROWDED_EVERY_MS, () => {
      if (ledger.counters.isCrowded) forget();
    });
  }

  stop(): void {
    for (const timer of this.timers) timer.cancel();
  }
}

/**
 * Journals how far streams have got: at once as far as that is known, and again once what came since the last time
 * is counted.
 */
export async function checkpoint(ledger: CheckpointedLedger, journal: { schedule(): void }): Promise<void> {
  const write = () => {
    ledger.checkpoint();
    journal.schedule();
  };
  write();
  const counting = ledger.countDelivered();
  if (counting === null) return;
  await counting;
  write();
}

export interface CheckpointedLedger {
  checkpoint(): void;
  countDelivered(): Promise<void> | null;
}

/** After a crash, what was delivered within this time is not billed. */
export const CHECKPOINT_EVERY_MS = 1_000;
const FORGET_EVERY_MS = 60_000;
const CROWDED_EVERY_MS = 1_000;
/** Counters that were not used for this long are forgotten. */
const IDLE_MS = 600_000;
