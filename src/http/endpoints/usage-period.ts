import type { Period } from "../../api/usage.ts";
import { DAY_MS, type EpochMs, HOUR_MS, isoTime } from "../../units/clock.ts";

/** The time that a report on usage covers, up to now, in stretches of the UTC clock. */
export interface UsagePeriod {
  readonly name: Period;
  readonly since: EpochMs;
  readonly stretchMs: number;
  /** All stretches, the present one whole. */
  readonly lengthMs: number;
}

/** How many stretches back, and how long each of them is. */
const LENGTHS: Record<Period, { readonly stretches: number; readonly stretchMs: number }> = {
  hour: { stretches: 60, stretchMs: HOUR_MS / 60 },
  day: { stretches: 24, stretchMs: HOUR_MS },
  week: { stretches: 7, stretchMs: DAY_MS },
  month: { stretches: 30, stretchMs: DAY_MS },
};

export function periodUpTo(now: EpochMs, name: Period): UsagePeriod {
  const { stretches, stretchMs } = LENGTHS[name];
  const since = (now - (now % stretchMs) - (stretches - 1) * stretchMs) as EpochMs;
  return { name, since, stretchMs, lengthMs: stretches * stretchMs };
}

/** What every report on usage begins with. */
export const periodView = ({ name, since, stretchMs }: UsagePeriod) => ({
  object: "usage" as const,
  period: name,
  since: isoTime(since),
  stretch_ms: stretchMs,
});
