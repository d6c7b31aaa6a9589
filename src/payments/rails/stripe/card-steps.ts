import { type EpochMs, epochMs } from "../../../units/clock.ts";
import { type NanoUsd, ZERO_USD } from "../../../units/usd.ts";
import { type Payment, type PaymentChange, TOO_MUCH } from "../../payment.ts";
import { type CardOrder, type CardSuspension, orderOf, orderText } from "./card-order.ts";
import { type Cents, type Checkout, centsOf, nanoOf } from "./checkout.ts";
import { isReturned, standingOf } from "./refunds-and-disputes.ts";

/**
 * What to do next about a payment, by what Stripe says of it now; null where it is as Stripe says. What it should be does
 * not depend on how it came to be what it is: see `standingOf`. The difference is one entry in the balance's credit,
 * which has a number.
 *
 * What takes several steps is written down before the first: a debit is made once, however often its step is.
 */
export function nextStep(payment: Payment, checkout: Checkout, at: StepTime): CardStep | null {
  const order = orderOf(payment);
  // Who refunds it has it alone: what else is new waits.
  if (order.returning !== null) return null;
  return (
    unfinishedStep(order, checkout) ??
    payingStep(payment, order, checkout) ??
    (IS_PAID.has(payment.state) ? standingStep(payment, order, checkout, at) : null)
  );
}

/** A process that was about to suspend the balance when that was lifted may still do so for `leaseMs`. */
export interface StepTime {
  readonly now: EpochMs;
  readonly leaseMs: number;
}

export type CardStep =
  | { readonly kind: "change"; readonly change: PaymentChange }
  /** Takes back what is not spent, and then writes what was taken. */
  | {
      readonly kind: "debit";
      readonly entry: number;
      readonly upTo: NanoUsd;
      done(taken: NanoUsd): PaymentChange;
    }
  | { readonly kind: "suspend" | "lift"; readonly done: PaymentChange };

/** Its money was here. */
const IS_PAID: ReadonlySet<string> = new Set(["credited", "disputed", "charged_back", "refunded", "held"]);

/** What was started, here or by a process that ended. Before anything of a disputed payment is taken, nothing of it is spent. */
function unfinishedStep(order: CardOrder, { disputes }: Checkout): CardStep | null {
  const { back, suspension } = order;
  const isDisputed = disputes.some(({ outcome }) => outcome !== "won");
  if (isDisputed && suspension !== null && !suspension.isMade) {
    const made = { ...order, suspension: { ...suspension, isMade: true } };
    return { kind: "suspend", done: { order: orderText(made) } };
  }
  if (back === null) return null;
  return {
    kind: "debit",
    ...back,
    done: (taken) => ({
      order: orderText({ ...order, back: null }),
      debited: taken,
      lost: (back.upTo - taken) as NanoUsd,
    }),
  };
}

function payingStep(payment: Payment, order: CardOrder, checkout: Checkout): CardStep | null {
  const { state } = payment;
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
  const accepted = { ...order, isAccepted: true };
  const { shouldBe } = standingOf(payment, accepted, checkout);
  return change({
    ...paid,
    state: "credited",
    reason: null,
    shouldBe,
    ...creditOf(payment, accepted, shouldBe),
  });
}

/** What arrived instead of what was asked for, as far as that is known: it is what can be credited. */
function heldAs({ amount }: Payment, order: CardOrder, { total, currency }: Checkout): PaymentChange {
  const paid = total === null ? "nothing" : `${total / 100} ${(currency ?? "").toUpperCase()}`;
  const note = `Stripe says that ${paid} was paid, and ${order.total / 100} USD were asked for.`;
  const isKnown = total !== null && currency === "usd";
  const fee = order.total - centsOf(amount);
  const arrived = isKnown ? nanoOf(Math.max(0, total - fee) as Cents) : ZERO_USD;
  const held = { ...order, note, total: total ?? order.total };
  return { state: "held", reason: note, amount: arrived, order: orderText(held), shouldBe: ZERO_USD };
}

/** No money is here yet. One that has expired may have been paid in its last moment. */
export const WAITING: ReadonlySet<string> = new Set(["created", "submitted", "confirming", "expired"]);

function standingStep(
  payment: Payment,
  order: CardOrder,
  checkout: Checkout,
  { now, leaseMs }: StepTime,
): CardStep | null {
  const { state, reason, shouldBe, isDisputed } = standingOf(payment, order, checkout);
  const more = (shouldBe - booked(payment)) as NanoUsd;
  // The operator decides about what the balance could not hold.
  if (payment.reason === TOO_MUCH && (state === "held" || state === "credited")) return null;
  const suspension = isDisputed ? startedSuspension(order.suspension) : order.suspension;
  const next = { ...order, suspension, isReturned: isReturned(order, checkout) };
  const isDone =
    state === payment.state && reason === payment.reason && more === 0 && shouldBe === payment.shouldBe;
  if (!isDone || suspension !== order.suspension || next.isReturned !== order.isReturned) {
    const entry = more < 0 ? taking(next, (0 - more) as NanoUsd) : creditOf(payment, next, more);
    return change({ state, reason, shouldBe, ...entry });
  }
  return isDisputed || suspension === null ? null : lifting(order, suspension, { now, leaseMs });
}

const startedSuspension = (suspension: CardSuspension | null): CardSuspension =>
  suspension?.liftedAt === null ? suspension : { isMade: false, liftedAt: null, isLifted: false };

/** Lifted once more when nobody can be about to suspend any more. */
function lifting(order: CardOrder, suspension: CardSuspension, { now, leaseMs }: StepTime): CardStep | null {
  const { liftedAt, isLifted } = suspension;
  const withSuspension = (after: CardSuspension | null) => ({
    order: orderText({ ...order, suspension: after }),
  });
  if (liftedAt === null) return change(withSuspension({ ...suspension, liftedAt: now }));
  const isLast = now >= liftedAt + leaseMs;
  if (isLifted && !isLast) return null;
  return { kind: "lift", done: withSuspension(isLast ? null : { ...suspension, isLifted: true }) };
}

/** When to look at a payment again that Stripe has no news of. */
export function liftedAgainAt(payment: Payment, leaseMs: number): EpochMs | null {
  const liftedAt = orderOf(payment).suspension?.liftedAt ?? null;
  return liftedAt === null ? null : epochMs(liftedAt + leaseMs);
}

/** Its entries in the balance's credit, and what they should have come to next to that: it was spent. */
export const booked = ({ credited, lost }: Payment): NanoUsd => (credited - lost) as NanoUsd;

const taking = (order: CardOrder, upTo: NanoUsd): PaymentChange => {
  const entry = order.entries;
  return { order: orderText({ ...order, entries: entry + 1, back: { entry, upTo } }) };
};

/** What was lost is found again first: the customer has had it. */
function creditOf({ lost }: Payment, order: CardOrder, more: NanoUsd): PaymentChange {
  const found = Math.min(more, lost);
  const amount = (more - found) as NanoUsd;
  const entry = order.entries;
  if (amount === 0) return { order: orderText(order), lost: (0 - found) as NanoUsd };
  return {
    order: orderText({ ...order, entries: entry + 1 }),
    lost: (0 - found) as NanoUsd,
    credit: entry === 0 ? { amount } : { amount, purpose: `more:${entry}` },
  };
}

const change = (what: PaymentChange): CardStep => ({ kind: "change", change: what });
