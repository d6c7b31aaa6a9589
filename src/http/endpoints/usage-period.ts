import type { Period } from "../../api/usage.ts";
import { DAY_MS, type EpochMs, HOUR_MS, isoTime } from "../../units/clock.ts";

/** The time that a report on usage covers, in stretches of the UTC clock. */
export interface UsagePeriod {
  readonly name: Period;
  readonly since: EpochMs;
  /** Null while it goes on. */
  readonly until: EpochMs | null;
  readonly stretchMs: number;
  /** All stretches, the present one whole. */
  readonly lengthMs: number;
}

/** How many stretches back, and how long each of them is. */
const LENGTHS: Record<Period, { readonly stretches: number; readonly stretchMs: number }> = {
  hour: { stretches: 60, stretchMs: HOUR_MS / 60 },
  day: { stretches: 24, stretchMs: HOUR_MS },
  today: { stretches: 24, stretchMs: HOUR_MS },
  yesterday: { stretches: 24, stretchMs: HOUR_MS },
  week: { stretches: 7, stretchMs: DAY_MS },
  month: { stretches: 30, stretchMs: DAY_MS },
};

export function periodAt(now: EpochMs, name: Period): UsagePeriod {
  const { stretches, stretchMs } = LENGTHS[name];
  const lengthMs = stretches * stretchMs;
  const midnight = now - (now % DAY_MS);
  const since =
    name === "today"
      ? midnight
      : name === "yesterday"
        ? midnight - DAY_MS
        : now - (now % stretchMs) - (stretches - 1) * stretchMs;
  const until = name === "yesterday" ? (midnight as EpochMs) : null;
  return { name, since: since as EpochMs, until, stretchMs, lengthMs };
}

/** What every report on usage begins with. */
export const periodView = ({ name, since, until, stretchMs }: UsagePeriod) => ({
  object: "usage" as const,
  period: name,
  since: isoTime(since),
  until: until === null ? null : isoTime(until),
  stretch_ms: stretchMs,
});
