import { LRUCache } from "lru-cache";
import type { Clock } from "../units/clock.ts";
import type { BalanceId } from "../units/id.ts";
import { RateWindow } from "./rate-window.ts";

/**
 * How many bytes of prompts a balance may have counted in vain within a minute. A refused request takes
 * nothing of its key's rate, and counting costs far more than refusing (ten megabytes keep a processor busy
 * for a second), so a balance without credit could have prompts counted without end. The allowance is per
 * balance because keys are free to make. There are two of them: `count_tokens` must not use up what requests
 * may have counted.
 */
export class CountAllowance {
  private readonly minutes = new LRUCache<BalanceId, RateWindow>({ max: MAX_BALANCES });

  constructor(private readonly clock: Pick<Clock, "elapsedMs">) {}

  /**
   * Allows one count of `bytes`; null when the balance has used its allowance. The first count of a minute is
   * allowed whatever its size.
   */
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
/**
 * The cost of a short prompt's trip to the thread and back, in bytes: allows two thousand of them a minute.
 */
const LEAST_BYTES = 16 * 1024;
/** Beyond this many balances, the idlest are forgotten first. */
const MAX_BALANCES = 10_000;
