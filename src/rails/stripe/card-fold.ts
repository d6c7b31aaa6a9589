import type { Payment, PaymentChange } from "../../payments/payment.ts";
import { formatUsd, type NanoUsd, ZERO_USD } from "../../units/usd.ts";
import { type CardOrder, type KnownDispute, orderOf, orderText } from "./card-order.ts";
import { type Checkout, type CheckoutDispute, nanoOf } from "./checkout.ts";

/**
 * What to do next about a payment, by what Stripe says of it now; null where it is as Stripe says. Events come late,
 * twice and in any order, so they are never read: each only has Stripe asked anew. What was asked may still be older
 * than what another process has already done. So nothing here goes back: refunds only grow, and a dispute goes from
 * open to lost to won.
 *
 * What takes several steps is written down before the first: a debit is named by what it is for, and made once,
 * however often its step is.
 */
export function nextStep(payment: Payment, checkout: Checkout): CardStep | null {
  const order = orderOf(payment);
  return (
    unfinishedStep(payment, order) ??
    payingStep(payment, order, checkout) ??
    (IS_PAID.has(payment.state) ? takenBackStep(payment, order, checkout) : null)
  );
}

export type CardStep =
  | { readonly kind: "change"; readonly change: PaymentChange }
  /** Takes back what is left, suspends before that where it is for a dispute, and then writes what was taken. */
  | {
      readonly kind: "debit";
      readonly purpose: `refund:${number}` | `dispute:${string}`;
      readonly upTo: NanoUsd;
      readonly suspends: boolean;
      done(taken: NanoUsd): PaymentChange;
    }
  | { readonly kind: "lift"; readonly done: PaymentChange };

/** Its money was here. */
const IS_PAID: ReadonlySet<string> = new Set(["credited", "disputed", "charged_back", "held"]);

/** What was begun, here or by a process that ended. */
function unfinishedStep(payment: Payment, order: CardOrder): CardStep | null {
  const { refunding, refunded, dispute, total } = order;
  if (refunding !== null) {
    const inAll = refundedCredit(payment, refunding);
    const upTo = Math.min(inAll - refundedCredit(payment, refunded), toTakeBack(payment)) as NanoUsd;
    return {
      kind: "debit",
      purpose: `refund:${refunding}`,
      upTo,
      suspends: false,
      done: (taken) => ({
        ...(refunding >= total ? REFUNDED : { reason: `${formatUsd(inAll)} of it were refunded.` }),
        order: orderText({ ...order, refunded: refunding, refunding: null }),
        debited: taken,
        lost: (upTo - taken) as NanoUsd,
      }),
    };
  }
  if (dispute === null) return null;
  if (dispute.taken === null) {
    const upTo = toTakeBack(payment);
    return {
      kind: "debit",
      purpose: `dispute:${dispute.id}`,
      upTo,
      suspends: true,
      done: (taken) => {
        const lost = (upTo - taken) as NanoUsd;
        return { order: disputed(order, { ...dispute, taken, lost }), debited: taken, lost };
      },
    };
  }
  return dispute.outcome === "won" && !dispute.isLifted
    ? { kind: "lift", done: { order: disputed(order, { ...dispute, isLifted: true }) } }
    : null;
}

function payingStep(payment: Payment, order: CardOrder, checkout: Checkout): CardStep | null {
  const { state, amount } = payment;
  const { session, intent, payer } = checkout;
  if (!WAITING.has(state)) return null;
  if (order.session === null) return change({ order: orderText({ ...order, session }) });
  if (checkout.state === "expired" && state !== "expired")
    return change({ state: "expired", reason: "It was not paid in time." });
  if (checkout.state === "unpaid" && state === "created")
    return change({ state: "confirming", transaction: intent });
  if (checkout.state !== "paid") return null;
  const paid = { transaction: intent, payer };
  if (checkout.total !== order.total || checkout.currency !== "usd")
    return change({ ...paid, state: "held", reason: `Stripe says that ${said(checkout)} was paid.` });
  return change({ ...paid, state: "credited", reason: null, credit: { amount } });
}

/** No money is here yet. One that has expired may have been paid in its last moment. */
export const WAITING: ReadonlySet<string> = new Set(["created", "submitted", "confirming", "expired"]);

function takenBackStep(payment: Payment, order: CardOrder, checkout: Checkout): CardStep | null {
  const { dispute, refunded } = checkout;
  if (payment.state === "held") return refunded >= order.total ? change(REFUNDED) : null;
  const step = dispute === null ? null : disputeStep(payment, order, dispute);
  // What a dispute has taken is given back before a refund can take it.
  if (payment.state === "disputed" && step !== null) return step;
  if (refunded > order.refunded && payment.state !== "charged_back")
    return change({ order: orderText({ ...order, refunding: refunded }) });
  return step;
}

function disputeStep(
  { state }: Payment,
  order: CardOrder,
  { id, outcome }: CheckoutDispute,
): CardStep | null {
  const known = order.dispute?.id === id ? order.dispute : null;
  if (known === null) {
    // It was over before anybody here knew of it.
    if (outcome === "won") return null;
    const begun = { id, outcome: "open", taken: null, lost: 0, isLifted: false } as const;
    return change({ state: "disputed", reason: DISPUTED, order: disputed(order, begun) });
  }
  if (RANK[outcome] <= RANK[known.outcome]) return null;
  const now = disputed(order, { ...known, outcome });
  if (outcome === "lost")
    return state === "disputed" ? change({ state: "charged_back", reason: LOST, order: now }) : null;
  const taken = (known.taken ?? ZERO_USD) as NanoUsd;
  return change({
    state: "credited",
    reason: null,
    order: now,
    ...(taken === 0 ? {} : { credit: { amount: taken, purpose: `won:${id}` } }),
    lost: -known.lost as NanoUsd,
  });
}

/** What of its credit nobody has taken back yet, and nobody has found to be spent. */
export const toTakeBack = ({ credited, lost }: Payment): NanoUsd => (credited - lost) as NanoUsd;

/** An appeal may still win what was lost. */
const RANK = { open: 0, lost: 1, won: 2 } as const satisfies Record<CheckoutDispute["outcome"], number>;

const DISPUTED = "The card's holder disputes it.";
const LOST = "The card's holder has disputed it and got the money back.";

const change = (what: PaymentChange): CardStep => ({ kind: "change", change: what });

const disputed = (order: CardOrder, dispute: KnownDispute): string => orderText({ ...order, dispute });

/** The fee is refunded last. */
const refundedCredit = ({ amount }: Payment, refunded: Parameters<typeof nanoOf>[0]): NanoUsd =>
  Math.min(nanoOf(refunded), amount) as NanoUsd;

const REFUNDED = { state: "refunded", reason: null } as const;

const said = ({ total, currency }: Checkout): string =>
  total === null ? "nothing" : `${total / 100} ${(currency ?? "").toUpperCase()}`;
