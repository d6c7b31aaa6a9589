import { LRUCache } from "lru-cache";
import type { Clock } from "../units/clock.ts";
import type { BalanceId } from "../units/id.ts";
import { RateWindow } from "./rate-window.ts";

/**
 * How much of its prompts a balance may have counted for nothing within a minute. A refused request takes nothing of its
 * key's rate, and counting costs far more than refusing (ten megabytes keep a processor busy for a second), so a balance
 * without credit could have prompts counted without end. It is the balance's because keys cost nothing.
 */
export class CountAllowance {
  private readonly minutes = new LRUCache<BalanceId, RateWindow>({ max: MAX_BALANCES });

  constructor(private readonly clock: Pick<Clock, "elapsedMs">) {}

  /** For one count of `bytes`; null when the balance has had its part. Whatever its size, the first of a minute is counted. */
  take(balance: BalanceId, bytes: number): CountTaken | null {
    const { clock } = this;
    const nowMs = clock.elapsedMs();
    const amount = Math.max(bytes, LEAST_BYTES);
    let minute = this.minutes.get(balance);
    if (minute === undefined) this.minutes.set(balance, (minute = new RateWindow()));
    const taken = minute.taken(nowMs);
    return taken === 0 || taken + amount <= BYTES_A_MINUTE ? new CountTaken(clock, minute, amount) : null;
  }
}

export class CountTaken {
  private readonly slot: number;

  constructor(
    private readonly clock: Pick<Clock, "elapsedMs">,
    private readonly minute: RateWindow,
    private readonly amount: number,
  ) {
    this.slot = minute.take(amount, clock.elapsedMs());
  }

  /** Once, when the request turned out to be paid for. */
  giveBack(): void {
    this.minute.adjust(this.slot, -this.amount, this.clock.elapsedMs());
  }
}

/** Some three seconds of the counting thread: three of the largest bodies, or forty long conversations. */
export const BYTES_A_MINUTE = 32 * 1024 * 1024;
/** What a short prompt's way to the thread and back costs, in bytes counted: two thousand of them a minute. */
const LEAST_BYTES = 16 * 1024;
/** Of more, those that have rested longest are forgotten first. */
const MAX_BALANCES = 10_000;
