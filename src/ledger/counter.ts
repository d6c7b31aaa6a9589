import type { Budget } from "../customers/keys/key.ts";
import { LONGEST_RUN_MS, runSubject } from "../customers/keys/run.ts";
import type { Tags } from "../customers/keys/tags.ts";
import { assert } from "../units/assert.ts";
import type { EpochMs } from "../units/clock.ts";
import { DAY_MS } from "../units/clock.ts";
import type { BalanceId, BudgetId, KeyId } from "../units/id.ts";
import { MAX_NANO_USD, type NanoUsd, ZERO_USD } from "../units/usd.ts";
import { WINDOW_KINDS, type WindowKind, windowAt } from "../units/window.ts";

/** On the counters that count requests. */
export const ONE_REQUEST = 1 as NanoUsd;

/**
 * What is counted against a limit: a balance's spending against its credit, a key's against its daily cap, a
 * budget's against its window. A window's start is part of the id, so a new window begins at zero with a
 * counter of its own, and what was admitted before midnight settles on the day it was admitted.
 */
export type CounterId = string & { readonly __unit: "CounterId" };

export const balanceCounter = (balance: BalanceId): CounterId => `balance:${balance}` as CounterId;

/** Stands for every balance where what is held is asked for. */
export const ALL_BALANCES = "balance:*" as CounterId;

export const isBalanceCounter = (id: CounterId): boolean => id.startsWith("balance:");

export const keyCounter = (kind: "day" | "month", rotationId: KeyId, at: EpochMs): CounterId =>
  `${kind}:${rotationId}:${windowAt(kind, at).startsAt}` as CounterId;

export const budgetCounter = (budget: BudgetId, window: WindowKind, at: EpochMs): CounterId =>
  `budget:${budget}:${window}:${windowAt(window, at).startsAt}` as CounterId;

/** What one value of a tag has spent of a budget that caps each; the value itself is in receipts alone. */
export function valueCounter({ id, window }: Budget, value: string, at: EpochMs): CounterId {
  const hash = new Bun.CryptoHasher("sha256")
    .update(`${id} ${value}`)
    .digest("base64url")
    .slice(0, HASH_LENGTH);
  return `budget:${id}${OF_VALUE}${hash}:${window}:${windowAt(window, at).startsAt}` as CounterId;
}

export const isValueCounter = (id: CounterId): boolean => id.includes(OF_VALUE);

/** The budget of a counter's subject, which may be that of one value. */
export const budgetOfSubject = (subject: string): string => subject.split(OF_VALUE, 1)[0]!;

/** Begins what nodes give back once a budget has changed. */
export const budgetPrefixes = (budget: string): string[] => [
  `budget:${budget}:`,
  `budget:${budget}${OF_VALUE}`,
];

/** In no other id. */
const OF_VALUE = "~";
/** Six bits each: two values that somebody picks do not meet. */
const HASH_LENGTH = 27;

/** The value that a request is counted under where the budget caps each value of a tag; undefined: it has not said. */
export const tagValueOf = ({ perTag }: Budget, tags: Tags | null | undefined): string | undefined =>
  perTag && tags && Object.hasOwn(tags, perTag) ? tags[perTag] : undefined;

/** The budget that caps each value of a tag which a request lacks; null where it may draw from all of them. */
export function untaggedBudget(budgets: readonly Budget[], tags: Tags | null | undefined): Budget | null {
  for (const budget of budgets) if (budget.perTag && tagValueOf(budget, tags) === undefined) return budget;
  return null;
}

/**
 * Everything that a budget is counted on, and what limits it there. All windows are counted, so that a budget
 * whose window changes finds in the new one what was spent. One that caps each value of a tag is counted in its own window,
 * which never changes: in all, without a limit, and under the value.
 */
export function budgetLimits(
  budget: Budget,
  at: EpochMs,
  tags?: Tags | null,
): readonly [CounterId, limit: NanoUsd][] {
  const { id, window, cap, perTag } = budget;
  if (!perTag)
    return WINDOW_KINDS.map((kind) => [budgetCounter(id, kind, at), kind === window ? cap : MAX_NANO_USD]);
  const value = tagValueOf(budget, tags);
  assert(value !== undefined, `a request without the tag of budget ${id} was let through`);
  return [
    [budgetCounter(id, window, at), MAX_NANO_USD],
    [valueCounter(budget, value, at), cap],
  ];
}

/** Requests, not money: the Open Tier's allowance of a UTC day. */
export const allowanceCounter = (owner: string, at: EpochMs): CounterId =>
  `allowance:${owner}:${windowAt("day", at).startsAt}` as CounterId;

/** What a run has spent, and its calls. Its start is in it, because an id is used again once its run has ended. */
export function runCounters({ balanceId, name, startedAt }: RunIdentity): RunCounterIds {
  const run = `${runSubject(balanceId, name)}:${startedAt}`;
  return { money: `run:${run}` as CounterId, calls: `calls:${run}` as CounterId };
}

interface RunIdentity {
  readonly balanceId: BalanceId;
  readonly name: string;
  readonly startedAt: EpochMs;
}

interface RunCounterIds {
  readonly money: CounterId;
  readonly calls: CounterId;
}

/** The run that a counter is one's of, as `runSubject` names it; null for any other counter. */
export function runOfCounter(id: CounterId): string | null {
  const [kind, subject] = id.split(":");
  return kind === "run" ? subject! : null;
}

/** Requests, tokens, and requests of the Open Tier, which has a rate of its own. */
export type RateKind = "rpm" | "tpm" | "free_rpm";

/**
 * What a chain of keys took within the last minute; where ledgers share its limits, each has a part of them.
 */
export const rateCounter = (kind: RateKind, rotationId: KeyId): CounterId =>
  `${kind}:${rotationId}` as CounterId;

/**
 * Everything that a node may have been granted for requests of a balance whose ends are not booked yet: of the balance
 * or, for free ones, of an allowance, as long as they are open; or of a rate of its keys, within the last minute.
 */
export function servingCounters(
  balance: BalanceId,
  account: string | null,
  rotations: readonly KeyId[],
  now: EpochMs,
): CounterId[] {
  const days = [now, (now - DAY_MS) as EpochMs];
  const rates = (["rpm", "tpm", "free_rpm"] as const).flatMap((kind) =>
    rotations.map((rotation) => rateCounter(kind, rotation)),
  );
  return [balanceCounter(balance), ...days.map((at) => allowanceCounter(account ?? balance, at)), ...rates];
}

/** Whether a counter's window can no longer be used, by any clock that is roughly right. */
export function isOver(id: CounterId, now: EpochMs): boolean {
  const parts = id.split(":");
  const startsAt = parts.at(-1);
  // The first release also counted a budget without its window in the id.
  const longestMs = LONGEST_WINDOW_MS[parts.length === 4 ? parts[2]! : parts[0]!];
  // A window without an end begins at 0.
  return (
    longestMs !== undefined && Number(startsAt) > 0 && now - Number(startsAt) > longestMs + OVER_AFTER_MS
  );
}

/** By kind of counter. */
const LONGEST_WINDOW_MS: Readonly<Record<string, number>> = {
  day: DAY_MS,
  allowance: DAY_MS,
  week: 7 * DAY_MS,
  month: 31 * DAY_MS,
  budget: 31 * DAY_MS,
  run: LONGEST_RUN_MS,
  calls: LONGEST_RUN_MS,
};
const OVER_AFTER_MS = 2 * DAY_MS;

/**
 * In memory, and only ever touched between two turns of the event loop: after a check of `room`, nothing
 * comes between before `hold`. `granted` is what the Authority lets this ledger use (see
 * ledger/authority); a ledger that is alone is granted everything, and the limit alone decides.
 */
export class Counter {
  spent: NanoUsd = ZERO_USD;
  held: NanoUsd = ZERO_USD;
  granted: NanoUsd = MAX_NANO_USD;
  /** Spent by other ledgers, or granted to them, in the latest answer of the Authority. */
  elsewhere: NanoUsd = ZERO_USD;
  /** The part of `elsewhere` that may stay unspent and come back. */
  openElsewhere: NanoUsd = ZERO_USD;
  /** See ledger/grants: a refill is small against what is left, so that a node that dies freezes little. */
  readonly aheadShare = 32;
  /**
   * Last journal record that changed `spent`: until it is applied, the store's sum is older than this one.
   */
  changedBy = 0;
  /** Monotonic time of last use. */
  usedAt = 0;

  constructor(readonly id: CounterId) {}

  /** There are few free requests in a day, and each answer says how many are left of all nodes'. */
  get isPrefetched(): boolean {
    return !this.id.startsWith("allowance:");
  }

  /** What may still be held under `limit`; never negative. */
  room(limit: NanoUsd): NanoUsd {
    return Math.max(0, boundOf(this, limit) - this.spent - this.held) as NanoUsd;
  }

  used(): NanoUsd {
    return (this.spent + this.held) as NanoUsd;
  }

  hold(amount: NanoUsd): void {
    this.held = (this.held + amount) as NanoUsd;
  }

  /** The same at a request's end, as the journal's record of that number says. */
  end(held: NanoUsd, spent: NanoUsd, sequence: number, nowMs: number): void {
    this.settle(held, spent);
    this.changedBy = sequence;
    this.usedAt = nowMs;
  }

  /** Gives a hold back, of which `spent` was used. */
  settle(held: NanoUsd, spent: NanoUsd): void {
    this.held = (this.held - held) as NanoUsd;
    this.spent = (this.spent + spent) as NanoUsd;
  }
}

/**
 * The most that one ledger may use of a limit. A grant is within the limit of its time. One that was lowered
 * since is for all ledgers together: what a request held under the old one and did not use, would be spent
 * beyond it. What the others had in the Authority's latest answer is the most that they can have until all have come
 * below the limit; from then on, the Authority counts the whole grant.
 */
export const boundOf = ({ granted, elsewhere }: Granted, limit: NanoUsd): number =>
  Math.min(granted, limit - elsewhere);

interface Granted {
  readonly granted: NanoUsd;
  readonly elsewhere: NanoUsd;
}
