import { invalidField, type Refusal, refuse, refused } from "../errors/refusal.ts";
import type { EpochMs } from "../units/clock.ts";
import type { BalanceId } from "../units/id.ts";
import { type NanoUsd, nanoFromUsd } from "../units/usd.ts";

/**
 * What a run of an agent may use: a budget that its requests make by naming it. The first request sets the
 * limits, and others can only tighten them.
 */
export interface RunLimits {
  /** Null means none. */
  readonly cap: NanoUsd | null;
  /** Requests that may come to something; null means any number. */
  readonly calls: number | null;
}

/** As a request names it: `<id>[; usd=N][; calls=N]`. */
export interface RunSpec extends RunLimits {
  readonly name: string;
}

/** A run as the store holds it. */
export interface StoredRun extends RunSpec {
  readonly startedAt: EpochMs;
  /** To the hour: see `TOUCH_MS`. */
  readonly usedAt: EpochMs;
}

/** The header, and the member of `metadata`, that name a run. */
export const RUN_HEADER = "x-gateway-run";

export function readRunSpec(text: string): RunSpec | Refusal {
  const [name, ...parameters] = text.split(";").map((part) => part.trim()) as [string, ...string[]];
  if (!NAME.test(name)) return invalidRun("must begin with 1 to 64 of `A-Z a-z 0-9 . _ -`");
  let cap: NanoUsd | null = null;
  let calls: number | null = null;
  for (const parameter of parameters) {
    const [key, value, ...more] = parameter.split("=").map((part) => part.trim());
    // A limit that is misspelt must not go for none.
    if (value === undefined || more.length > 0) return invalidRun(FORM);
    if (key === "usd" && cap === null) {
      const limit = readCap(value);
      if (refused(limit)) return limit;
      cap = limit;
    } else if (key === "calls" && calls === null) {
      if (!COUNT.test(value)) return invalidRun("has `calls` that are no whole number from 1 to 999999999");
      calls = Number(value);
    } else return invalidRun(FORM);
  }
  return { name, cap, calls };
}

function readCap(value: string): NanoUsd | Refusal {
  const cap = DECIMAL.test(value) ? nanoFromUsd(Number(value)) : null;
  return cap === null || cap === 0
    ? invalidRun("has a `usd` that is no amount above 0 with at most 9 decimals")
    : cap;
}

/** The stricter of both, limit by limit. */
export const stricter = (one: RunLimits, other: RunLimits): RunLimits => ({
  cap: least(one.cap, other.cap),
  calls: least(one.calls, other.calls),
});

export const isSameLimits = (one: RunLimits, other: RunLimits): boolean =>
  one.cap === other.cap && one.calls === other.calls;

const least = <T extends number>(one: T | null, other: T | null): T | null =>
  one === null || (other !== null && other < one) ? other : one;

/** Its id may then be used for another run. */
export const hasEnded = ({ startedAt, usedAt }: Pick<StoredRun, "startedAt" | "usedAt">, at: EpochMs) =>
  at >= usedAt + QUIET_MS || at >= startedAt + LONGEST_RUN_MS;

/**
 * What becomes of a run that a request names: it is begun, tightened, used again or left as it is. Beyond the
 * number that a balance may have, the one that was quiet for longest ends, if that is an hour.
 */
export function joinRun(
  spec: RunSpec,
  at: EpochMs,
  most: number,
  known: StoredRun | null,
  others: OtherRuns,
): RunChange | Refusal {
  if (known !== null && !hasEnded(known, at)) {
    const limits = stricter(known, spec);
    const isTighter = !isSameLimits(limits, known);
    const isWritten = isTighter || at - known.usedAt >= TOUCH_MS;
    const usedAt = isWritten ? (Math.max(at, known.usedAt) as EpochMs) : known.usedAt;
    return { run: { ...known, ...limits, usedAt }, isWritten, isTighter, ends: null };
  }
  const { count, quietest } = others;
  const isFull = known === null && count >= most;
  if (isFull && (quietest === null || at - quietest.usedAt < RESTED_MS)) return tooMany(most);
  const run = { ...spec, startedAt: at, usedAt: at };
  return { run, isWritten: true, isTighter: false, ends: isFull ? quietest!.name : null };
}

export interface RunChange {
  readonly run: StoredRun;
  readonly isWritten: boolean;
  /** Whoever remembers the run has to be told. */
  readonly isTighter: boolean;
  /** Another run of the balance that ends for it. */
  readonly ends: string | null;
}

/** All runs of the balance, ended ones too. */
export interface OtherRuns {
  readonly count: number;
  readonly quietest: Pick<StoredRun, "name" | "usedAt"> | null;
}

export const NO_OTHERS: OtherRuns = { count: 0, quietest: null };

export function othersOf(runs: readonly Pick<StoredRun, "name" | "usedAt">[]): OtherRuns {
  let quietest: OtherRuns["quietest"] = null;
  for (const run of runs) if (quietest === null || run.usedAt < quietest.usedAt) quietest = run;
  return { count: runs.length, quietest };
}

/** Runs at `KeyStore`, for one balance: `decide` sees what it changes. */
export type RunDecision = (known: StoredRun | null, others: OtherRuns) => RunChange | Refusal;

/** How precisely it is known when a run was last used, so that not every request of it writes. */
export const TOUCH_MS = 3_600_000;
/** So a run ends no sooner than a day after its last request. */
const QUIET_MS = 25 * 3_600_000;
/** So that what was spent of a run need not be remembered for ever. */
export const LONGEST_RUN_MS = 31 * 86_400_000;
/** The precision of `usedAt` allows for no less. */
const RESTED_MS = 2 * TOUCH_MS;

const NAME = /^[A-Za-z0-9._-]{1,64}$/;
const COUNT = /^[1-9][0-9]{0,8}$/;
const DECIMAL = /^[0-9]{1,9}(\.[0-9]{1,12})?$/;
const FORM = "must have the form `<id>; usd=0.50; calls=40`, with each limit at most once";

const tooMany = (most: number): Refusal =>
  refuse(
    "rate_limited",
    `The balance has used ${most} runs within two hours, the most it can have at once. Go on with one of them, or send the request without \`${RUN_HEADER}\`.`,
    { retryAfterS: 60, shouldRetry: false, param: RUN_HEADER },
  );

export const invalidRun = (what: string): Refusal => invalidField(RUN_HEADER, `\`${RUN_HEADER}\` ${what}.`);

/** A run's name is one of its balance's. */
export const runSubject = (balance: BalanceId, name: string): string => `${balance}/${name}`;
