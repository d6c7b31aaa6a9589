import type { AgentRun } from "../customers/keys/runs.ts";
import type { EpochMs } from "../units/clock.ts";
import { MAX_NANO_USD, type NanoUsd } from "../units/usd.ts";
import { windowAt } from "../units/window.ts";
import { boundOf, type Counter, ONE_REQUEST } from "./counter.ts";
import type { KeyCounters, MoneyCounters, RateShare } from "./key-counters.ts";
import type { RateWindow } from "./limits/rate-window.ts";
import type { Allowance, ReservationRequest } from "./reservation.ts";

/** A limit in which a request has no room, with the figures for its refusal. */
export type Shortfall =
  | RateShortfall
  | AllowanceShortfall
  | BalanceShortfall
  | CapShortfall
  | CallsShortfall
  | { readonly what: "books" }
  | { readonly what: "key" };

/** The Authority cannot be reached, so it is not known whether there is room. */
export const BOOKS_AWAY: Shortfall = { what: "books" };

/** The key, or what it draws from, has changed since the request was read. */
export const KEY_CHANGED: Shortfall = { what: "key" };

/** A minute's rate of a key; `limit` and `requested` count requests or, for `tpm_limit`, tokens. */
export interface RateShortfall {
  readonly what: "rpm_limit" | "open_tier.rpm" | "tpm_limit";
  readonly limit: number;
  readonly requested: number;
  /** Seconds until it fits; null when it is larger than the limit itself. */
  readonly retryAfterS: number | null;
}

/** An owner has used all free requests of the UTC day. */
export interface AllowanceShortfall {
  readonly what: "allowance";
  readonly owner: string;
  readonly limit: number;
  readonly resetsAt: EpochMs;
  readonly undecided?: true;
}

export interface BalanceShortfall extends LimitState {
  readonly what: "balance";
  readonly available: NanoUsd;
}

/** The calls of a run; amounts are numbers of them. */
export interface CallsShortfall extends LimitState {
  readonly what: "calls";
  readonly run: string;
}

/** A cap on spending; `name` is a budget's or a run's, `resetsAt` null for a window that never ends. */
export interface CapShortfall extends LimitState {
  readonly what: "daily_limit_usd" | "monthly_limit_usd" | "budget" | "run";
  readonly name?: string;
  /** The value of the tag, if the budget caps each value. */
  readonly of?: { readonly tag: string; readonly value: string };
  readonly resetsAt: EpochMs | null;
}

/** A limit on money, and what is used of it. */
interface LimitState {
  /** The cap; of a balance, its credit. */
  readonly limit: NanoUsd;
  readonly spent: NanoUsd;
  /** Held by open requests, which release what they do not use. */
  readonly held: NanoUsd;
  /** What the request needs to hold. */
  readonly amount: NanoUsd;
  /** The request's worst case, which the limit has to cover together with what is spent. */
  readonly worst: NanoUsd;
  /** Other nodes may have some of it left, but did not return it in time. */
  readonly undecided?: true;
}

/** Whether there is room once open requests have ended. */
export const isOnlyHeld = ({ spent, worst, limit }: LimitState): boolean => spent + worst <= limit;

export function rateShortfall(
  what: RateShortfall["what"],
  limit: number,
  window: RateWindow,
  requested: number,
  nowMs: number,
): RateShortfall {
  const retryAfterS = window.secondsUntilFits(requested, limit, nowMs);
  return { what, limit, requested, retryAfterS };
}

export const allowanceShortfall = ({ owner, limit }: Allowance, at: EpochMs): AllowanceShortfall => ({
  what: "allowance",
  owner,
  limit,
  resetsAt: windowAt("day", at).resetsAt!,
});

/** Null if the limit has room for the hold and the worst case. Unspent grants of other ledgers count as held. */
function shortRoom(counter: Counter, limit: NanoUsd, amount: NanoUsd, worst: NanoUsd): LimitState | null {
  const { elsewhere, openElsewhere } = counter;
  const spent = (counter.spent + elsewhere - openElsewhere) as NanoUsd;
  if (spent + worst <= limit && counter.room(limit) >= amount) return null;
  return { limit, spent, held: (counter.held + openElsewhere) as NanoUsd, amount, worst };
}

/** Checked first, because no wait fixes it. */
export function callsShortfall(run: AgentRun, calls: Counter): CallsShortfall | null {
  const short = shortRoom(calls, callsLimit(run), ONE_REQUEST, ONE_REQUEST);
  return short === null ? null : { ...short, what: "calls", run: run.name };
}

export const callsLimit = ({ limits }: AgentRun): NanoUsd => (limits?.calls ?? MAX_NANO_USD) as NanoUsd;

/** The first of a key's rates in which the request has no room. */
export function ratesShortfall(
  counters: KeyCounters,
  { rpmLimit, freeRpmLimit, tpmLimit, rateTokens }: ReservationRequest,
  nowMs: number,
): RateShortfall | null {
  const { requestShare, freeRequestShare, tokenShare } = counters;
  return (
    shareShortfall("rpm_limit", rpmLimit, requestShare, 1, nowMs) ??
    shareShortfall("open_tier.rpm", freeRpmLimit, freeRequestShare, 1, nowMs) ??
    shareShortfall("tpm_limit", tpmLimit, tokenShare, rateTokens, nowMs)
  );
}

const shareShortfall = (
  what: RateShortfall["what"],
  limit: number | null,
  share: RateShare,
  requested: number,
  nowMs: number,
): RateShortfall | null =>
  limit !== null && share.window.taken(nowMs) + requested > boundOf(share, limit as NanoUsd)
    ? rateShortfall(what, limit, share.window, requested, nowMs)
    : null;

/** Each limit must have room for `amount` now, and for `worst` if nothing else were open. */
export function moneyShortfall(
  { balance, day, month, caps, run }: MoneyCounters,
  request: ReservationRequest,
  amount: NanoUsd,
  worst: NanoUsd,
): Shortfall | null {
  if (amount === 0) return null;
  const { key, at } = request;
  const { credited, counter } = balance;
  const poor = shortRoom(counter, credited, amount, worst);
  if (poor !== null) return { ...poor, what: "balance", available: counter.room(credited) };
  // Shared counters without a limit are granted too, so that a limit that is set later finds everything counted.
  let last: CapShortfall | null = null;
  const dailyLimit = key.dailyLimit ?? MAX_NANO_USD;
  const today = shortRoom(day, dailyLimit, amount, worst);
  if (today !== null) last = { ...today, what: "daily_limit_usd", resetsAt: windowAt("day", at).resetsAt };
  const monthlyLimit = key.monthlyLimit ?? MAX_NANO_USD;
  const monthly = shortRoom(month, monthlyLimit, amount, worst);
  if (monthly !== null) {
    const { resetsAt } = windowAt("month", at);
    last = laterOf(last, { ...monthly, what: "monthly_limit_usd", resetsAt });
  }
  for (const { budget, counter, limit, value } of caps) {
    const short = shortRoom(counter, limit, amount, worst);
    if (short !== null) {
      const { resetsAt } = windowAt(budget.window, at);
      const cap = { ...short, what: "budget", name: budget.name, resetsAt } as const;
      last = laterOf(last, value === undefined ? cap : { ...cap, of: { tag: budget.perTag!, value } });
    }
  }
  const ofRun = run === null ? null : shortRoom(run.counter, run.limit, amount, worst);
  if (ofRun !== null) last = laterOf(last, { ...ofRun, what: "run", name: run!.run.name, resetsAt: null });
  return last;
}

/** The limit that has room last, so that a client waits only once; of two that have room together, the first. */
const laterOf = (one: CapShortfall | null, other: CapShortfall): CapShortfall =>
  one === null || roomAt(other) > roomAt(one) ? other : one;

/** The end of the window, if the limit is spent; if open requests hold the rest, there may be room at any moment. */
const roomAt = (short: CapShortfall): number => (isOnlyHeld(short) ? 0 : (short.resetsAt ?? Infinity));
