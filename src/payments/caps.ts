import { DAY_MS, type EpochMs, epochMs, HOUR_MS } from "../units/clock.ts";
import type { NanoUsd } from "../units/usd.ts";
import type { PaymentAmounts } from "./amounts.ts";
import type { AmountCap, CountCap } from "./payment-store.ts";

/** What may be paid into a balance within a day. */
export const dayCap = ({ maxPerDay }: PaymentAmounts, now: EpochMs): AmountCap => ({
  of: "balance",
  limit: maxPerDay,
  since: epochMs(now - DAY_MS),
});

/** What requests of one key may pay within an hour. */
export const hourCap = (limit: NanoUsd, now: EpochMs): AmountCap => ({
  of: "key",
  limit,
  since: epochMs(now - HOUR_MS),
});

/** Each is looked at once a minute until it is paid or has run out. */
export const OPEN_PAGES: CountCap = { of: "page", most: 4 };
