import { formatUsd, NANO_PER_USD, type NanoUsd } from "../units/usd.ts";

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
