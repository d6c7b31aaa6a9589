import type { EpochMs } from "./clock.ts";
import { DAY_MS } from "./clock.ts";

/** Spending windows, all in UTC. A week starts on Monday; `total` never ends. */
export type WindowKind = "day" | "week" | "month" | "total";

export const WINDOW_KINDS = ["day", "week", "month", "total"] as const satisfies readonly WindowKind[];

export interface Window {
  readonly kind: WindowKind;
  readonly startsAt: EpochMs;
  /** First instant of the next window; null for `total`. */
  readonly resetsAt: EpochMs | null;
}

/** 1970-01-01 was a Thursday, so the first Monday began four days later. */
const FIRST_MONDAY_MS = 4 * DAY_MS;

export function windowAt(kind: WindowKind, at: EpochMs): Window {
  switch (kind) {
    case "day":
      return span(kind, at - mod(at, DAY_MS), DAY_MS);
    case "week":
      return span(kind, at - mod(at - FIRST_MONDAY_MS, 7 * DAY_MS), 7 * DAY_MS);
    case "month": {
      const date = new Date(at);
      const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
      return {
        kind,
        startsAt: Date.UTC(year, month, 1) as EpochMs,
        resetsAt: Date.UTC(year, month + 1, 1) as EpochMs,
      };
    }
    case "total":
      return { kind, startsAt: 0 as EpochMs, resetsAt: null };
  }
}

function span(kind: WindowKind, startsAt: number, length: number): Window {
  return { kind, startsAt: startsAt as EpochMs, resetsAt: (startsAt + length) as EpochMs };
}

const mod = (value: number, by: number): number => ((value % by) + by) % by;
