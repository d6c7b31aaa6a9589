import { DAY_MS, type EpochMs, HOUR_MS } from "../../units/clock.ts";
import { invalidField, type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import type { BalanceId, KeyId } from "../../units/id.ts";
import { type NanoUsd, nanoFromUsd } from "../../units/usd.ts";
import type { Balance } from "./key.ts";
import { type Actor, changedHands, rootOf } from "./root.ts";

/**
 * What a run of an agent may use: a budget that its requests make by naming it. The first request sets the limits. The
 * key that sent it can lower them, owners can set them again; any key of the balance may join.
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
  /** The key that may lower its limits; null for a run from before that was known. */
  readonly startedBy: KeyId | null;
  /** To the hour: see `TOUCH_MS`. Zero: an owner has ended it. */
  readonly usedAt: EpochMs;
  /** Counts what owners changed, whose limits may be higher than those before. */
  readonly revision: number;
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
 * What becomes of a run that a request names: it starts, its limits are lowered, it is used again or left as it is. Beyond
 * the number that a balance may have, the one that was quiet for longest ends, if that is an hour. `by` is the first key of
 * the chain of rotations that the request's key is in.
 */
export function joinRun(
  { spec, by, at }: JoiningRequest,
  known: StoredRun | null,
  others: OtherRuns,
): RunChange | Refusal {
  if (known !== null && !hasEnded(known, at)) {
    const limits = stricter(known, spec);
    const hasNewLimits = !isSameLimits(limits, known);
    if (hasNewLimits && known.startedBy !== by) return startedByAnother(spec.name);
    const isWritten = hasNewLimits || at - known.usedAt >= TOUCH_MS;
    const usedAt = isWritten ? (Math.max(at, known.usedAt) as EpochMs) : known.usedAt;
    return { run: { ...known, ...limits, usedAt }, isWritten, hasNewLimits, ends: null };
  }
  const { most, quietest } = others;
  if (quietest !== null && at - quietest.usedAt < RESTED_MS) return tooMany(most);
  // What was counted for one that ended in this millisecond is not this one's.
  const startedAt = Math.max(at, (known?.startedAt ?? 0) + 1) as EpochMs;
  const run = { ...spec, startedAt, startedBy: by, usedAt: at, revision: 0 };
  return { run, isWritten: true, hasNewLimits: false, ends: quietest?.name ?? null };
}

export interface JoiningRequest {
  readonly spec: RunSpec;
  readonly by: KeyId;
  readonly at: EpochMs;
}

/** An owner's change: other limits, or the run's end, after which its id stands for a new one. */
export const revisedRun =
  (name: string, at: EpochMs, change: Partial<RunLimits> | "end", by: Actor): RunRevision =>
  (known, balance) => {
    if (rootOf(by, balance) === null) return changedHands();
    if (known === null || hasEnded(known, at)) return noSuchRun(name);
    const changed = change === "end" ? { usedAt: 0 as EpochMs } : change;
    return { ...known, ...changed, revision: known.revision + 1 };
  };

export interface RunChange {
  readonly run: StoredRun;
  readonly isWritten: boolean;
  /** Every process that remembers the run has to forget it. */
  readonly hasNewLimits: boolean;
  /** Another run of the balance that ends for it. */
  readonly ends: string | null;
}

/** What a new run needs to know of the balance's other runs, ended ones too. */
export interface OtherRuns {
  /** How many the balance may have. */
  readonly most: number;
  /** The one that was used longest ago, where there are that many; null where there is room for one more. */
  readonly quietest: Pick<StoredRun, "name" | "usedAt"> | null;
}

/** A run that exists takes nobody's place. */
export const NO_OTHERS: OtherRuns = { most: Number.POSITIVE_INFINITY, quietest: null };

/** Runs at `KeyStore`, for one balance: `decide` sees what it changes. */
export type RunDecision = (known: StoredRun | null, others: OtherRuns) => RunChange | Refusal;

/** An owner's change at `KeyStore`. */
export type RunRevision = (known: StoredRun | null, balance: Balance) => StoredRun | Refusal;

/** How precisely it is known when a run was last used, so that not every request of it writes. */
export const TOUCH_MS = HOUR_MS;
/** So a run ends no sooner than a day after its last request. */
const QUIET_MS = 25 * HOUR_MS;
/** So that what was spent of a run need not be remembered for ever. */
export const LONGEST_RUN_MS = 31 * DAY_MS;
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

const startedByAnother = (name: string): Refusal =>
  invalidRun(
    `names limits below those of the run \`${name}\`, which another key started. Only that key and the balance's owner can lower them; send \`${name}\` alone to join it as it is`,
  );

const noSuchRun = (name: string): Refusal =>
  invalidField("id", `The balance has no run \`${name}\` that goes on.`);

export const invalidRun = (what: string): Refusal => invalidField(RUN_HEADER, `\`${RUN_HEADER}\` ${what}.`);

/** A run's name is one of its balance's. */
export const runSubject = (balance: BalanceId, name: string): string => `${balance}/${name}`;
