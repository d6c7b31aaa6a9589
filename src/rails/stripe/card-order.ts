import type { Payment } from "../../payments/payment.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { NanoUsd } from "../../units/usd.ts";
import type { Cents, CheckoutDispute } from "./checkout.ts";

/** What is kept of a card payment beside what every payment has (`Payment.order`). */
export interface CardOrder {
  /** What the payer is charged, with the fee. */
  readonly total: Cents;
  /** Where the payer comes back to: kept, because Stripe refuses to be asked again with another. */
  readonly returnUrl: string;
  /** The Checkout Session; null until Stripe has said which. */
  readonly session: string | null;
  /** Taken back for refunds so far, in what was refunded in all. */
  readonly refunded: Cents;
  /** A refund that is being taken back: it has come to so much in all. */
  readonly refunding: Cents | null;
  /** The operator's refund, until it is known whether its credit could be taken back: of all or nothing. */
  readonly returning: { readonly amount: NanoUsd; readonly until: EpochMs } | null;
  /** Those that were heard of before they were won. */
  readonly disputes: readonly KnownDispute[];
}

export interface KnownDispute extends CheckoutDispute {
  /** What was left and taken back, and what was not; null until that is done. */
  readonly taken: number | null;
  readonly lost: number;
  /** It was won, and its suspension is lifted. */
  readonly isLifted: boolean;
}

export const orderOf = ({ order }: Payment): CardOrder => JSON.parse(order);
export const orderText = (order: CardOrder): string => JSON.stringify(order);

export const newOrder = (total: Cents, returnUrl: string): CardOrder => ({
  total,
  returnUrl,
  session: null,
  refunded: 0 as Cents,
  refunding: null,
  returning: null,
  disputes: [],
});
