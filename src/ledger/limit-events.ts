import { eventOf, type RecordedEvent } from "../customers/events/event.ts";
import { type EpochMs, epochMs, isoTime } from "../units/clock.ts";
import type { BalanceId } from "../units/id.ts";
import { type NanoUsd, usdFromNano } from "../units/usd.ts";
import { type WindowKind, windowAt } from "../units/window.ts";
import { budgetOfSubject, type CounterId, isValueCounter } from "./counter.ts";

/** A limit that charges are counted against, as its counter names it. */
export interface CountedLimit {
  readonly kind: "day" | "month" | "budget" | "run";
  /** The rotation id of a key, the id of a budget, or the name of a run. */
  readonly subject: string;
  /** A budget's window; a run's start. */
  readonly period: string;
  /** Whether it is the counter of one value of a tag. */
  readonly isValue: boolean;
}

/** Null for what is no limit of money. */
export function countedLimit(counter: CounterId): CountedLimit | null {
  const [kind, subject = "", period = ""] = counter.split(":");
  switch (kind) {
    case "day":
    case "month":
      return { kind, subject, period: kind, isValue: false };
    case "budget":
      return { kind, subject: budgetOfSubject(subject), period, isValue: isValueCounter(counter) };
    case "run":
      return { kind, subject: subject.slice(subject.indexOf("/") + 1), period, isValue: false };
    default:
      return null;
  }
}

/**
 * What a charge means for a limit: it took the limit's use to a part of it that is reported. As with credit, one transaction
 * crosses each line. The counter's id has the window in it, so a line that is crossed again, because the limit was raised
 * meanwhile, is the same event.
 */
export function limitEvents({ counter, before, after, cap, of, balance, at }: ChargedLimit): RecordedEvent[] {
  return THRESHOLDS_PERCENT.flatMap((percent) => {
    const line = Math.max(1, Math.ceil(cap / (100 / percent)));
    if (before >= line || after < line) return [];
    return eventOf("limit.reached", `${counter} ${percent}`, {
      at,
      balance,
      threshold_percent: percent,
      used_usd: usdFromNano(after as NanoUsd),
      cap_usd: usdFromNano(cap),
      ...of,
      ...windowOf(counter),
    });
  });
}

export interface ChargedLimit {
  readonly counter: CounterId;
  /** Nano-dollars that were spent before the charge, and after it. */
  readonly before: number;
  readonly after: number;
  readonly cap: NanoUsd;
  /** Which limit it is. */
  readonly of: Readonly<Record<string, unknown>>;
  readonly balance: BalanceId;
  readonly at: EpochMs;
}

const THRESHOLDS_PERCENT = [50, 80, 100] as const;

/** When a limit that starts again does; a run's never does. */
function windowOf(counter: CounterId): Readonly<Record<string, unknown>> {
  const limit = countedLimit(counter)!;
  if (limit.kind === "run") return {};
  const startsAt = epochMs(Number(counter.split(":").at(-1)));
  const { resetsAt } = windowAt(limit.period as WindowKind, startsAt);
  return { window: limit.period, resets_at: resetsAt === null ? null : isoTime(resetsAt) };
}
