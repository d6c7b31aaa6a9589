import type { Clock, Timer } from "../../units/clock.ts";

/**
 * Runs what books do periodically. Whatever fails, for instance on a full disk, is tried again the next time.
 */
export class Beats {
  private readonly timers = new Set<Timer>();

  constructor(
    private readonly clock: Pick<Clock, "after">,
    private readonly onFault: (error: unknown) => void,
  ) {}

  every(ms: number, run: () => void): void {
    const { timers, clock, onFault } = this;
    let timer = clock.after(ms, again);
    timers.add(timer);
    function again(): void {
      timers.delete(timer);
      timer = clock.after(ms, again);
      timers.add(timer);
      try {
        run();
      } catch (error) {
        onFault(error);
      }
    }
  }

  stop(): void {
    for (const timer of this.timers) timer.cancel();
  }
}

/**
 * Journals how far streams have got: at once as far as that is known, and again once what came since the last time
 * is counted.
 */
export function checkpoint(ledger: CheckpointedLedger, journal: { schedule(): void }): void {
  const write = () => {
    ledger.checkpoint();
    journal.schedule();
  };
  write();
  void ledger.countDelivered()?.then(write);
}

export interface CheckpointedLedger {
  checkpoint(): void;
  countDelivered(): Promise<void> | null;
}

/** After a crash, what was delivered within this time is not billed. */
export const CHECKPOINT_EVERY_MS = 1_000;
export const FORGET_EVERY_MS = 60_000;
/** Counters that were not used for this long are forgotten. */
export const IDLE_MS = 600_000;
