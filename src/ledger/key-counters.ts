import { areSameBudgets, type Budget } from "../customers/keys/key.ts";
import type { AgentRun } from "../customers/keys/runs.ts";
import type { Tags } from "../customers/keys/tags.ts";
import type { Clock, EpochMs } from "../units/clock.ts";
import { MAX_NANO_USD, type NanoUsd, ZERO_USD } from "../units/usd.ts";
import type { Window } from "../units/window.ts";
import { type Counter, type CounterId, tagValueOf } from "./counter.ts";
import type { Grantable } from "./grant-negotiation.ts";
import { RateWindow } from "./limits/rate-window.ts";

/** Counters that a request holds on, and their names as records write them. */
export class Counters {
  readonly ids: readonly CounterId[];

  constructor(readonly all: readonly Counter[]) {
    this.ids = all.map(({ id }) => id);
  }
}

export const NO_COUNTERS = new Counters([]);

/** What a key's requests of a day pay from. */
export class MoneyCounters {
  readonly counters: Counters;

  constructor(
    readonly balance: BalanceBook,
    readonly day: Counter,
    readonly month: Counter,
    readonly budgets: readonly Budget[],
    readonly caps: readonly BudgetCap[],
    /** Null if the request belongs to no run. */
    readonly run: RunCap | null = null,
  ) {
    const counters = [balance.counter, day, month, ...caps.map(({ counter }) => counter)];
    this.counters = new Counters(run === null ? counters : [...counters, run.counter]);
  }

  /** Whether the counters are those of these budgets and values of tags. */
  drawsFrom(budgets: readonly Budget[], tags: Tags | null | undefined): boolean {
    if (!areSameBudgets(budgets, this.budgets)) return false;
    for (const { budget, value } of this.caps)
      if (value !== undefined && value !== tagValueOf(budget, tags)) return false;
    return true;
  }

  with(budgets: readonly Budget[], caps: readonly BudgetCap[]): MoneyCounters {
    return new MoneyCounters(this.balance, this.day, this.month, budgets, caps, this.run);
  }

  of(run: RunCap): MoneyCounters {
    return new MoneyCounters(this.balance, this.day, this.month, this.budgets, this.caps, run);
  }
}

export interface BudgetCap {
  readonly budget: Budget;
  readonly counter: Counter;
  readonly limit: NanoUsd;
  /** The value of the budget's tag, if the counter is for one value. */
  readonly value: string | undefined;
}

export class RunCap {
  constructor(
    readonly run: AgentRun,
    readonly counter: Counter,
  ) {}

  /** Nothing fits while it is not known. */
  get limit(): NanoUsd {
    const { limits } = this.run;
    return limits === null ? ZERO_USD : (limits.cap ?? MAX_NANO_USD);
  }
}

/** The counters of one chain of rotated keys. */
export class KeyCounters {
  readonly requests: RateWindow;
  readonly freeRequests: RateWindow;
  readonly tokens: RateWindow;
  openHolds = 0;
  usedAt = 0;

  constructor(
    public money: MoneyCounters,
    private today: Window,
    readonly requestShare: RateShare,
    readonly freeRequestShare: RateShare,
    readonly tokenShare: RateShare,
  ) {
    this.requests = requestShare.window;
    this.freeRequests = freeRequestShare.window;
    this.tokens = tokenShare.window;
  }

  /** Whether day and month are those of `at`; a wall clock that is set back may enter an earlier day again. */
  covers(at: EpochMs): boolean {
    return at >= this.today.startsAt && at < this.today.resetsAt!;
  }

  enterDay(money: MoneyCounters, today: Window): void {
    this.money = money;
    this.today = today;
  }
}

/** This ledger's part of a key's rate: what it took within the last minute is in use. */
export class RateShare implements Grantable {
  readonly window = new RateWindow();
  elsewhere: NanoUsd = ZERO_USD;
  openElsewhere: NanoUsd = ZERO_USD;
  readonly isPrefetched = true;
  readonly aheadShare = 4;

  constructor(
    readonly id: CounterId,
    private readonly clock: Pick<Clock, "elapsedMs">,
    public granted: NanoUsd,
  ) {}

  used(): NanoUsd {
    // An answer longer than its estimate may exceed the share.
    return Math.min(this.granted, this.window.taken(this.clock.elapsedMs())) as NanoUsd;
  }
}

export interface BalanceBook {
  readonly counter: Counter;
  credited: NanoUsd;
}
