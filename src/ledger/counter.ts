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
 * A sum that a limit applies to: the spending of a balance, of a key in a day, of a budget in a window. A window's start is
 * part of the id. So each window has a counter of its own that begins at zero, and a request that was admitted before
 * midnight settles on that day.
 */
export type CounterId = string & { readonly __unit: "CounterId" };

export const balanceCounter = (balance: BalanceId): CounterId => `balance:${balance}` as CounterId;

/** All balances together, for `CounterCache.heldOn`. */
export const ALL_BALANCES = "balance:*" as CounterId;

export const isBalanceCounter = (id: CounterId): boolean => id.startsWith("balance:");

export const keyCounter = (kind: "day" | "month", rotationId: KeyId, at: EpochMs): CounterId =>
  `${kind}:${rotationId}:${windowAt(kind, at).startsAt}` as CounterId;

export const budgetCounter = (budget: BudgetId, window: WindowKind, at: EpochMs): CounterId =>
  `budget:${budget}:${window}:${windowAt(window, at).startsAt}` as CounterId;

/** One value of a tag in a budget that caps each value. The id has a hash: only receipts contain the value itself. */
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

/** Id prefixes of a budget's counters. */
export const budgetPrefixes = (budget: string): string[] => [
  `budget:${budget}:`,
  `budget:${budget}${OF_VALUE}`,
];

/** Occurs in no other id. */
const OF_VALUE = "~";
/** Characters of six bits: enough that nobody can find two values with the same hash. */
const HASH_LENGTH = 27;

/** The request's value of the tag whose values the budget caps; undefined without that tag. */
export const tagValueOf = ({ perTag }: Budget, tags: Tags | null | undefined): string | undefined =>
  perTag && tags && Object.hasOwn(tags, perTag) ? tags[perTag] : undefined;

/** The first budget that caps each value of a tag which the request lacks; null: it may draw from all of them. */
export function untaggedBudget(budgets: readonly Budget[], tags: Tags | null | undefined): Budget | null {
  for (const budget of budgets) if (budget.perTag && tagValueOf(budget, tags) === undefined) return budget;
  return null;
}

/**
 * A budget's counters with their limits. All windows are counted, so that after a change of window the new one has what was
 * spent. A budget that caps each value of a tag never changes its window: it has a counter for all values, without a limit,
 * and one for the value.
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

/** What a run has spent, and its calls. The id has the run's start, because a name is used again after a run has ended. */
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

/** The run that a counter belongs to, as `runSubject` names it; null for any other counter. */
export function runOfCounter(id: CounterId): string | null {
  const [kind, subject] = id.split(":");
  return kind === "run" ? subject! : null;
}

/** Requests, tokens, and requests of the Open Tier, which has a rate of its own. */
export type RateKind = "rpm" | "tpm" | "free_rpm";

/** What a chain of rotated keys took within the last minute. */
export const rateCounter = (kind: RateKind, rotationId: KeyId): CounterId =>
  `${kind}:${rotationId}` as CounterId;

/**
 * Every counter on which a node may hold a grant while it serves requests of a balance: the balance, its allowance for free
 * requests, and the rates of its keys.
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

/** Whether a counter's window is over, by any clock that is roughly right. */
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
 * A counter in memory. Nothing may await between `room` and `hold`. `granted` is what the Authority lets this ledger use (see
 * ledger/authority); a ledger that is alone has no such bound.
 */
export class Counter {
  spent: NanoUsd = ZERO_USD;
  held: NanoUsd = ZERO_USD;
  granted: NanoUsd = MAX_NANO_USD;
  /** Spent by or granted to other ledgers, in the Authority's latest answer. */
  elsewhere: NanoUsd = ZERO_USD;
  /** The part of `elsewhere` that may stay unspent and come back. */
  openElsewhere: NanoUsd = ZERO_USD;
  /** See ledger/grants: refills are small compared with what is left, so that a dead node strands little. */
  readonly aheadShare = 32;
  /** Last journal record that changed `spent`; until the store has applied it, its sum is older. */
  changedBy = 0;
  /** Monotonic time of last use. */
  usedAt = 0;

  constructor(readonly id: CounterId) {}

  /** Not for allowances: a day has few free requests, and each answer shows how many all nodes have left. */
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

  /** `settle` at a request's end, whose record has the number `sequence`. */
  end(held: NanoUsd, spent: NanoUsd, sequence: number, nowMs: number): void {
    this.settle(held, spent);
    this.changedBy = sequence;
    this.usedAt = nowMs;
  }

  /** Releases a hold, of which `spent` was used. */
  settle(held: NanoUsd, spent: NanoUsd): void {
    assert(held <= this.held, "more is released than is held");
    this.held = (this.held - held) as NanoUsd;
    this.spent = (this.spent + spent) as NanoUsd;
  }
}

/**
 * The most that one ledger may use of a limit. A grant was within the limit of its time, but a limit that was lowered since
 * applies to all ledgers together. Until their sum is below it, the others have at most what they had in the Authority's
 * latest answer.
 */
export const boundOf = ({ granted, elsewhere }: Granted, limit: NanoUsd): number =>
  Math.min(granted, limit - elsewhere);

interface Granted {
  readonly granted: NanoUsd;
  readonly elsewhere: NanoUsd;
}
