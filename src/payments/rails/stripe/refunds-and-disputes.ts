import { formatUsd, type NanoUsd, ZERO_USD } from "../../../units/usd.ts";
import type { Payment, PaymentState } from "../../payment.ts";
import type { CardOrder } from "./card-order.ts";
import { type Cents, type Checkout, nanoOf } from "./checkout.ts";

/**
 * What a card payment should be, by all that Stripe says of it now, whatever happened in which order before. Money that
 * has left, by refunds and by disputes that are open or lost, is no credit. The payer was charged the fee next to it, and
 * what leaves is credit first: Stripe keeps its fee, so the operator is left with what is credited.
 */
export function standingOf({ amount }: Payment, order: CardOrder, checkout: Checkout): CardStanding {
  const { refunded, disputes } = checkout;
  const isOpen = disputes.some(({ outcome }) => outcome === "open");
  const isLost = disputes.some(({ outcome }) => outcome === "lost");
  const gone = refunded + goneByDisputes(checkout);
  const isDisputed = isOpen || isLost;
  const isCredit = order.isAccepted && !isReturned(order, checkout);
  // A bank may take all of a charge that was refunded in part: no more than the credit can be gone.
  const shouldBe = isCredit ? (Math.max(0, amount - nanoOf(gone as Cents)) as NanoUsd) : ZERO_USD;
  if (isOpen) return { shouldBe, isDisputed, state: "disputed", reason: IS_DISPUTED };
  if (isLost) return { shouldBe, isDisputed, state: "charged_back", reason: IS_LOST };
  if (refunded >= order.total) return { shouldBe, isDisputed, state: "refunded", reason: null };
  if (!order.isAccepted) return { shouldBe, isDisputed, state: "held", reason: order.note };
  const back = Math.min(nanoOf(refunded), amount) as NanoUsd;
  const reason = back > 0 ? `${formatUsd(back)} of it were refunded.` : order.note;
  return { shouldBe, isDisputed, state: "credited", reason };
}

/** The operator's refund is on its way, of which Stripe does not know yet. What is disputed is not refunded. */
export const isReturned = ({ isReturned, total }: CardOrder, { refunded, disputes }: Checkout): boolean =>
  isReturned && refunded < total && disputes.every(({ outcome }) => outcome === "won");

const goneByDisputes = ({ disputes }: Checkout): number =>
  disputes.reduce((sum, { amount, outcome }) => (outcome === "won" ? sum : sum + amount), 0);

export interface CardStanding {
  /** Its part of the balance's credit, as far as that is not lost. */
  readonly shouldBe: NanoUsd;
  readonly state: PaymentState;
  readonly reason: string | null;
  /** The balance is suspended for it. */
  readonly isDisputed: boolean;
}

const IS_DISPUTED = "The card's holder disputes it.";
const IS_LOST = "The card's holder has disputed it and got the money back.";
