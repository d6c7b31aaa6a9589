import { boundedCache } from "../../units/bounded-cache.ts";
import type { Clock } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import { type RateWindow, TakenAmount } from "./rate-window.ts";
import { MAX_REMEMBERED, type Unpaid, UnpaidAllowance, windowOf } from "./unpaid-allowance.ts";

/**
 * How long the counting thread may work within a minute on prompts that are not paid for in the end. A refused
 * request takes nothing of its key's rate, and counting costs far more than refusing, so a balance could keep
 * the thread busy for nothing. Keys are free to make, so it is the balance that has an allowance; balances are
 * free to make as well, so those without credit share what their network has, and what all of them have. There
 * are two of these: `count_tokens` must not use up what requests may have counted.
 */
export class CountAllowance {
  private readonly paid = boundedCache<BalanceId, RateWindow>(MAX_REMEMBERED);
  private readonly unpaid: UnpaidAllowance;

  constructor(private readonly clock: Pick<Clock, "elapsedMs">) {
    this.unpaid = new UnpaidAllowance(UNPAID_MS, clock);
  }

  /**
   * Allows one count of `bytes`; null when the allowance is used up. The first count of a minute is allowed to
   * a balance with credit whatever its size.
   */
  take(payer: CountPayer, bytes: number): CountTaken | null {
    const ms = MIN_MS + bytes * MAX_MS_PER_BYTE;
    const windows = payer.hasCredit ? this.room(payer.balance, ms) : this.unpaid.room(payer, ms);
    return windows === null || typeof windows === "number" ? null : new CountTaken(windows, ms, this.clock);
  }

  private room(balance: BalanceId, ms: number): readonly RateWindow[] | null {
    const window = windowOf(this.paid, balance);
    const taken = window.taken(this.clock.elapsedMs());
    return taken === 0 || taken + ms <= PAID_MS_A_MINUTE ? [window] : null;
  }
}

export interface CountPayer extends Unpaid {
  readonly hasCredit: boolean;
}

export class CountTaken extends TakenAmount {
  private tookMs = MIN_MS;

  /** What a part of it really took of the thread; until then, an upper bound is taken for all. */
  took(ms: number): void {
    this.tookMs += ms;
    this.adjustTo(this.tookMs);
  }

  /** Once, when the request turned out to be paid for. */
  giveBack(): void {
    this.adjustTo(0);
  }
}

/** A sixth of the thread's time: three of the largest bodies, or some hundred long conversations. */
export const PAID_MS_A_MINUTE = 10_000;
/** Without credit: a few long prompts, so that the refusal says what they would cost; a tenth of the thread in all. */
export const UNPAID_MS = { aBalance: 500, aNetwork: 1_500, inAll: 6_000 };
/** Until it is known: text without spaces takes this long, prose a tenth of it. */
const MAX_MS_PER_BYTE = 0.000_5;
/** A short prompt's trip to the thread and back. */
const MIN_MS = 2;
