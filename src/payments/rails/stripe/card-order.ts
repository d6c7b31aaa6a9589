import type { EpochMs } from "../../../units/clock.ts";
import type { NanoUsd } from "../../../units/usd.ts";
import type { Payment } from "../../payment.ts";
import type { Cents } from "./checkout.ts";

/** What is kept of a card payment next to what every payment has (`Payment.order`). */
export interface CardOrder {
  /** What the payer is charged, with the fee. */
  readonly total: Cents;
  /** Where the payer comes back to: kept, because Stripe refuses to be asked again with another. */
  readonly returnUrl: string;
  /** The Checkout Session; null until Stripe has said which. */
  readonly session: string | null;
  /** Its money becomes credit: it came as ordered, or the operator has said so. */
  readonly isAccepted: boolean;
  /** Why it is held, or what the operator noted when they accepted it. */
  readonly note: string | null;
  /** How often Stripe was polled. The answer to an earlier poll may be out of date, so it is not written. */
  readonly polls: number;
  /** Entries that it has made in the balance's credit. */
  readonly entries: number;
  /** What is being taken back, under the number of its entry. */
  readonly back: { readonly entry: number; readonly upTo: NanoUsd } | null;
  /** The operator's refund, until it is known whether its credit could be taken back: of all or nothing. */
  readonly returning: { readonly amount: NanoUsd; readonly until: EpochMs } | null;
  /** How many refunds of the operator have taken the credit back. */
  readonly refunds: number;
  /** The operator refunds all of it, and its credit is taken back: Stripe is asked to refund it until it has. */
  readonly isReturned: boolean;
  /** The suspension for its disputes. */
  readonly suspension: CardSuspension | null;
}

/** Written before the balance is suspended, and before that is lifted, so that a process that finds it knows that it may be. */
export interface CardSuspension {
  readonly isMade: boolean;
  readonly liftedAt: EpochMs | null;
  readonly isLifted: boolean;
}

export function orderOf({ order, state }: Pick<Payment, "order" | "state">): CardOrder {
  const { [STORED_POLLS]: polls = 0, ...known }: StoredOrder = JSON.parse(order);
  return { ...newOrder(known.total, known.returnUrl), isAccepted: WAS_ACCEPTED.has(state), ...known, polls };
}

/** States of orders from before that was written down. */
const WAS_ACCEPTED: ReadonlySet<string> = new Set(["credited", "disputed", "charged_back"]);

export const orderText = ({ polls, ...order }: CardOrder): string =>
  JSON.stringify({ ...order, [STORED_POLLS]: polls });

/** The name of `polls` in stored orders. */
const STORED_POLLS = "look";

type StoredOrder = Partial<CardOrder> &
  Pick<CardOrder, "total" | "returnUrl"> & { readonly [STORED_POLLS]?: number };

export const newOrder = (total: Cents, returnUrl: string): CardOrder => ({
  total,
  returnUrl,
  session: null,
  isAccepted: false,
  note: null,
  polls: 0,
  entries: 0,
  back: null,
  returning: null,
  refunds: 0,
  isReturned: false,
  suspension: null,
});
