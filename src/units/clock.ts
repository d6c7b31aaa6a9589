/** Milliseconds since 1970-01-01T00:00:00Z. */
export type EpochMs = number & { readonly __unit: "EpochMs" };

export const epochMs = (value: number): EpochMs => value as EpochMs;

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** A pending timer. Cancelling twice, or after it fired, does nothing. */
export interface Timer {
  cancel(): void;
}

/**
 * Time, handed in. `now` is the wall clock and may jump; `elapsedMs` never runs backwards and is what
 * deadlines and durations are measured with. The simulator supplies a virtual one.
 */
export interface Clock {
  now(): EpochMs;
  elapsedMs(): number;
  after(ms: number, fire: () => void): Timer;
}

export const systemClock: Clock = {
  now: () => Date.now() as EpochMs,
  elapsedMs: () => performance.now(),
  // What is left of a time may be over by now, and a negative time prints a warning.
  after: (ms, fire) => new SystemTimer(setTimeout(fire, Math.max(0, ms))),
};

class SystemTimer implements Timer {
  constructor(private readonly handle: ReturnType<typeof setTimeout>) {}

  cancel(): void {
    clearTimeout(this.handle);
  }
}

/** Resolves after `ms`. */
export const pause = (clock: Pick<Clock, "after">, ms: number): Promise<void> =>
  new Promise((resolve) => void clock.after(ms, resolve));

/**
 * Resolves with what the work brings, or after `ms` with undefined. No timer is left, which would keep all that waits
 * alive.
 */
export async function atMost<Result>(
  clock: Pick<Clock, "after">,
  ms: number,
  work: Promise<Result> | Result,
): Promise<Result | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = clock.after(ms, () => late.resolve(undefined));
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    timer.cancel();
  }
}

/** Whole seconds, at least one: for `Retry-After`. */
export const secondsUntil = (atMs: number, nowMs: number): number =>
  Math.max(1, Math.ceil((atMs - nowMs) / 1_000));

/** ISO 8601 in UTC, as receipts and listings show times. */
export const isoTime = (at: EpochMs): string => new Date(at).toISOString();
