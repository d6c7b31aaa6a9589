import type { Payment, PaymentChange } from "../../payments/payment.ts";
import { epochMs } from "../../units/clock.ts";
import { formatUsd, type NanoUsd } from "../../units/usd.ts";
import { type CardOrder, type KnownDispute, orderOf, orderText } from "./card-order.ts";
import { type Cents, type Checkout, type CheckoutDispute, centsOf, nanoOf } from "./checkout.ts";

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
  // Who refunds it has it alone: what else is new waits.
  if (order.returning !== null) return null;
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
  const { refunding, refunded, disputes, total } = order;
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
  const begun = disputes.find(({ taken }) => taken === null);
  if (begun !== undefined) {
    const upTo = toTakeBack(payment);
    return {
      kind: "debit",
      purpose: `dispute:${begun.id}`,
      upTo,
      suspends: true,
      done: (taken) => {
        const lost = (upTo - taken) as NanoUsd;
        return { order: orderText(withDisputes(order, { ...begun, taken, lost })), debited: taken, lost };
      },
    };
  }
  const isOver = disputes.every(({ outcome }) => outcome === "won");
  const lifted = disputes.filter(({ isLifted }) => !isLifted).map((one) => ({ ...one, isLifted: true }));
  return isOver && lifted.length > 0
    ? { kind: "lift", done: { order: orderText(withDisputes(order, ...lifted)) } }
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
    return change({ ...paid, ...heldAs(payment, order, checkout) });
  return change({ ...paid, state: "credited", reason: null, credit: { amount } });
}

/** What arrived instead of what was asked for, as far as that is known: it is what can be credited and refunded. */
function heldAs({ amount }: Payment, order: CardOrder, { total, currency }: Checkout): PaymentChange {
  const paid = total === null ? "nothing" : `${total / 100} ${(currency ?? "").toUpperCase()}`;
  const reason = `Stripe says that ${paid} was paid, and ${order.total / 100} USD were asked for.`;
  if (total === null || currency !== "usd") return { state: "held", reason };
  const fee = order.total - centsOf(amount);
  const arrived = nanoOf(Math.max(0, total - fee) as Cents);
  return { state: "held", reason, amount: arrived, order: orderText({ ...order, total }) };
}

/** No money is here yet. One that has expired may have been paid in its last moment. */
export const WAITING: ReadonlySet<string> = new Set(["created", "submitted", "confirming", "expired"]);

function takenBackStep(payment: Payment, order: CardOrder, checkout: Checkout): CardStep | null {
  const { disputes, refunded } = checkout;
  if (payment.state === "held") return refunded >= order.total ? change(REFUNDED) : null;
  const step = newDispute(order, disputes) ?? furtherDispute(order, disputes);
  // What a dispute has taken is given back before a refund can take it.
  if (payment.state === "disputed" && step !== null) return step;
  if (refunded > order.refunded && payment.state !== "charged_back")
    return change({ order: orderText({ ...order, refunding: refunded }) });
  return step;
}

/** Before what is new of the others: of several, one may have been won when the next was opened. */
function newDispute(order: CardOrder, disputes: readonly CheckoutDispute[]): CardStep | null {
  // What was won before anybody here knew of it took nothing.
  const opened = disputes.find(({ id, outcome }) => outcome !== "won" && known(order, id) === undefined);
  if (opened === undefined) return null;
  const begun = { id: opened.id, outcome: "open", taken: null, lost: 0, isLifted: false } as const;
  // Somebody who asked later may have seen it won, of which no news comes any more: it is looked at once more.
  return change({ ...IS_DISPUTED, order: orderText(withDisputes(order, begun)), lookAt: AT_ONCE });
}

function furtherDispute(order: CardOrder, disputes: readonly CheckoutDispute[]): CardStep | null {
  for (const { id, outcome } of disputes) {
    const before = known(order, id);
    if (before !== undefined && RANK[outcome] > RANK[before.outcome])
      return outcome === "won" ? won(order, before) : decided(withDisputes(order, { ...before, outcome }));
  }
  return null;
}

/** What it has taken is credited again, unless there is another one that would have taken it. */
function won(order: CardOrder, dispute: KnownDispute): CardStep {
  const { id, taken, lost } = dispute;
  const other = order.disputes.find((one) => one.id !== id && one.outcome !== "won");
  const over = { ...dispute, outcome: "won" } as const;
  if (other !== undefined) {
    const taker = { ...other, taken: other.taken! + taken!, lost: other.lost + lost };
    return decided(withDisputes(order, { ...over, taken: 0, lost: 0 }, taker));
  }
  return decided(withDisputes(order, over), {
    ...(taken === 0 ? {} : { credit: { amount: taken as NanoUsd, purpose: `won:${id}` } }),
    lost: -lost as NanoUsd,
  });
}

/** As the disputes that are not won have the payment. */
function decided(order: CardOrder, more: PaymentChange = {}): CardStep {
  const has = (wanted: CheckoutDispute["outcome"]) =>
    order.disputes.some(({ outcome }) => outcome === wanted);
  const is = has("open") ? IS_DISPUTED : has("lost") ? IS_LOST : IS_WON;
  return change({ ...is, ...more, order: orderText(order) });
}

/** What of its credit nobody has taken back yet, and nobody has found to be spent. */
export const toTakeBack = ({ credited, lost }: Payment): NanoUsd => (credited - lost) as NanoUsd;

/** An appeal may still win what was lost. */
const RANK = { open: 0, lost: 1, won: 2 } as const satisfies Record<CheckoutDispute["outcome"], number>;

const AT_ONCE = epochMs(0);

const IS_DISPUTED = { state: "disputed", reason: "The card's holder disputes it." } as const;
const IS_LOST = {
  state: "charged_back",
  reason: "The card's holder has disputed it and got the money back.",
} as const;
const IS_WON = { state: "credited", reason: null } as const;

const change = (what: PaymentChange): CardStep => ({ kind: "change", change: what });

const known = ({ disputes }: CardOrder, id: string) => disputes.find((one) => one.id === id);

/** The order with these disputes, in place of what was known of them. */
function withDisputes(order: CardOrder, ...changed: readonly KnownDispute[]): CardOrder {
  const others = order.disputes.filter(({ id }) => !changed.some((one) => one.id === id));
  return { ...order, disputes: [...others, ...changed] };
}

/** The fee is refunded last. */
const refundedCredit = ({ amount }: Payment, refunded: Parameters<typeof nanoOf>[0]): NanoUsd =>
  Math.min(nanoOf(refunded), amount) as NanoUsd;

const REFUNDED = { state: "refunded", reason: null } as const;
