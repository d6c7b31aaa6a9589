import { MIGRATION_MS } from "../../src/store/postgres/postgres.ts";
import { type Clock, systemClock } from "../../src/units/clock.ts";
import { until } from "../fakes/until.ts";

/** A clock whose long waits end at once, but no deadline; `rounds` counts those of this length that were started. */
export class HurriedClock implements Clock {
  readonly now = systemClock.now;
  readonly elapsedMs = systemClock.elapsedMs;
  rounds = 0;

  constructor(private readonly roundMs: number) {}

  after(ms: number, fire: () => void) {
    if (ms === this.roundMs) this.rounds += 1;
    return systemClock.after(ms < LONG_MS || ms === MIGRATION_MS ? ms : HURRIED_MS, fire);
  }

  /** Resolves when so many more have started. */
  async more(rounds: number): Promise<void> {
    const enough = this.rounds + rounds;
    await until(() => this.rounds >= enough);
  }
}

const LONG_MS = 60_000;
const HURRIED_MS = 5;
