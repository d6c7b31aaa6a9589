import type { EpochMs } from "../../../units/clock.ts";
import { NANO_PER_USD, type NanoUsd, nanoUsd } from "../../../units/usd.ts";
import type { StripeConfig } from "./stripe-config.ts";

/** Stripe counts USD in cents. */
export type Cents = number & { readonly __unit: "Cents" };

/** A Checkout Session with all that became of its payment: what Stripe says of it now. */
export interface Checkout {
  readonly session: string;
  /** Where the payer goes; null once it is over. */
  readonly url: string | null;
  readonly expiresAt: EpochMs;
  readonly state: "open" | "paid" | "unpaid" | "expired";
  readonly total: Cents | null;
  readonly currency: string | null;
  /** The PaymentIntent; null before there is one. */
  readonly intent: string | null;
  /** The card, as its holder knows it: "visa …4242". */
  readonly payer: string | null;
  /** In all, so far. */
  readonly refunded: Cents;
  /** Oldest first: a charge has one, and hardly ever a second. */
  readonly disputes: readonly CheckoutDispute[];
}

/** `open`: the money is gone for now. Stripe's inquiries are none: they take nothing. */
export interface CheckoutDispute {
  readonly id: string;
  readonly outcome: "open" | "lost" | "won";
  /** The disputed part of the charge, or all of it. */
  readonly amount: Cents;
}

/** What the payer is charged: what is credited, and what Stripe keeps of it all. */
export function totalOf(amount: NanoUsd, { percent, fixed }: StripeConfig["fee"]): Cents {
  const nano = (amount + fixed) / (1 - percent / 100);
  // Far below a cent, so that 2.9 % in binary never adds one.
  return Math.ceil(nano / NANO_PER_CENT - 1e-6) as Cents;
}

export const centsOf = (amount: NanoUsd): Cents => Math.round(amount / NANO_PER_CENT) as Cents;
export const nanoOf = (cents: Cents): NanoUsd => nanoUsd(cents * NANO_PER_CENT);

const NANO_PER_CENT = NANO_PER_USD / 100;
