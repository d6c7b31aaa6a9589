import { DAY_MS, type EpochMs, epochMs, HOUR_MS } from "../../../units/clock.ts";
import type { Payment, PaymentChange } from "../../payment.ts";
import type { PaymentCap } from "../../payment-store.ts";
import type { X402Network } from "./network.ts";
import { orderOf, type X402Order } from "./next-step.ts";
import type { GasTerms } from "./settler.ts";

/**
 * A transfer that fails in a block costs the gateway's gas account all that it used, and its payer nothing. A plain account
 * has to move its money away in time for that. The code of a contract wallet can refuse in a block what it accepted in each
 * simulation, so no simulation settles it: gas for such transfers is reserved, and what they wasted is counted.
 */
export interface GasRisk {
  /** Null where the gateway pays for no gas. */
  readonly terms: GasTerms | null;
  readonly isContract: boolean;
}

/** What a payment with that risk is recorded with. */
export const gasAtRisk = ({ terms, isContract }: GasRisk): number =>
  isContract && terms !== null ? Number(terms.gas) : 0;

/** What has to hold before gas is risked for a payment. */
export function riskCaps(
  { network, wastedGasPerHour }: X402Network,
  { terms, isContract }: GasRisk,
  now: EpochMs,
): PaymentCap[] {
  const underWay = { of: "payer", most: isContract ? 1 : MAX_UNDER_WAY } as const;
  if (terms === null) return [underWay];
  const ofPayer = { of: "payer gas", since: epochMs(now - DAY_MS) } as const;
  if (!isContract) return [ofPayer, underWay];
  const since = epochMs(now - HOUR_MS);
  return [ofPayer, { of: "network gas", network, most: wastedGasPerHour, since }, underWay];
}

/**
 * A transaction for the payment is in a block and did not use the authorization. `gas`: what it wasted at our expense, where 0 is
 * no failure of the payer's; null if somebody else paid for it.
 */
export function failureChange(payment: Payment, gas: number | null, now: EpochMs): PaymentChange {
  const order = orderOf(payment);
  const counted = { ...order, failures: (order.failures ?? 0) + (gas === 0 ? 0 : 1) } satisfies X402Order;
  return { order: JSON.stringify(counted), transaction: null, ...wasteChange(payment, gas ?? 0, now) };
}

export const wasteChange = ({ gas, wastedAt }: Payment, wasted: number, now: EpochMs): PaymentChange =>
  wasted === 0 ? {} : { gas: wastedAt === null ? wasted : gas + wasted, wastedAt: now };

/** Whether the transfer failed as often as it may. */
export const isGivenUp = ({ failures = 0, isContract }: X402Order): boolean =>
  failures >= (isContract ? 1 : MAX_FAILURES);

/** A wallet can sign the same money away any number of times, and each transfer that fails costs gas. */
const MAX_UNDER_WAY = 4;
/** The money of a plain account may have been elsewhere for a moment. */
const MAX_FAILURES = 3;
