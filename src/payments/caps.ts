import { type Refusal, refuse, retryAfter } from "../errors/refusal.ts";
import { type EpochMs, epochMs } from "../units/clock.ts";
import { formatUsd, type NanoUsd } from "../units/usd.ts";
import type { PaymentAmounts } from "./amounts.ts";
import type { AmountCap, CountCap, PaymentCap } from "./payment-store.ts";

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

/** Nothing was paid, because a cap is in the way. */
export function capReached(cap: PaymentCap): Refusal {
  switch (cap.of) {
    case "key":
      return refuse(
        "budget_exhausted",
        `Requests of one key may pay at most ${formatUsd(cap.limit)} within an hour (\`payments.inline.max_usd_per_hour\`). Nothing was paid. Credit can still be paid for with POST /v1/credits.`,
        retryAfter(HOUR_MS / 1_000),
      );
    case "balance":
      return refuse(
        "budget_exhausted",
        `At most ${formatUsd(cap.limit)} may be paid into a balance within a day (\`payments.amounts.max_usd_per_day\`). Nothing was paid.`,
        retryAfter(DAY_MS / 1_000),
      );
    case "page":
      return refuse(
        "rate_limited",
        `This balance has ${cap.most} card payments that wait to be paid. Pay one of those (GET /v1/payments), or wait until one runs out, an hour after it was ordered.`,
        retryAfter(HOUR_MS / 1_000),
      );
    default:
      return refuse(
        "rate_limited",
        `This wallet has ${cap.most} payments under way, which may be for the same money. Nothing was paid. Retry in ${ON_ITS_WAY_S} s.`,
        { retryAfterS: ON_ITS_WAY_S },
      );
  }
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const ON_ITS_WAY_S = 5;
