import { DAY_MS, type EpochMs, epochMs, HOUR_MS } from "../units/clock.ts";
import { formatUsd, NANO_PER_USD, type NanoUsd } from "../units/usd.ts";
import type { AmountCap, CountCap } from "./payment-store.ts";

/** How much may be paid at once, and into a balance within a day. */
export interface PaymentAmounts {
  readonly min: NanoUsd;
  readonly suggested: NanoUsd;
  readonly max: NanoUsd;
  readonly maxPerDay: NanoUsd;
}

/** Why this amount cannot be paid; null where it can. */
export function whyNot(amount: NanoUsd, { min, max }: PaymentAmounts): string | null {
  const given = `it is ${formatUsd(amount)}`;
  if (amount % NANO_PER_CENT !== 0) return `must be a whole number of cents; ${given}`;
  if (amount < min || amount > max) return `must be from ${formatUsd(min)} to ${formatUsd(max)}; ${given}`;
  return null;
}

/**
 * What is offered to a customer who lacks so much: first what is suggested, or all that is lacking, then the least that covers
 * it. Clients with a small limit of their own take the first that they may pay. Empty where no payment covers it.
 */
export function offeredAmounts(lacking: NanoUsd, { min, suggested, max }: PaymentAmounts): NanoUsd[] {
  const covering = Math.max(min, Math.ceil(lacking / NANO_PER_CENT) * NANO_PER_CENT) as NanoUsd;
  if (covering > max) return [];
  return suggested > covering ? [suggested, covering] : [covering];
}

const NANO_PER_CENT = NANO_PER_USD / 100;

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
