import { type Credit, type Debit, type TooMuch, tookBack } from "../../../ledger/credit.ts";
import { type Clock, type EpochMs, epochMs } from "../../../units/clock.ts";
import { type Refusal, refuse } from "../../../units/errors/refusal.ts";
import type { BalanceId, PaymentId } from "../../../units/id.ts";
import { newId } from "../../../units/id.ts";
import type { RandomBytes } from "../../../units/random.ts";
import { type NanoUsd, ZERO_USD } from "../../../units/usd.ts";
import { JUST_CREATED, type Payment, type PaymentChange, paymentKey, TOO_MUCH } from "../../payment.ts";
import type { AmountCap, CountCap, PaymentStore } from "../../payment-store.ts";
import { capReached, usedKey } from "../../refusals.ts";
import type { PaymentPace } from "../payment-pace.ts";
import type { WatchedRail } from "../payment-watch.ts";
import { type CardOrder, newOrder, orderOf, orderText } from "./card-order.ts";
import { booked, type CardStep, liftedAgainAt, nextStep, WAITING } from "./card-steps.ts";
import { type Cents, type Checkout, centsOf, totalOf } from "./checkout.ts";
import type { StripeApi } from "./stripe-api.ts";
import type { StripeConfig } from "./stripe-config.ts";
import type { Concern, SentEvent } from "./webhook.ts";

/** Card payments: has Stripe take the money, and does with the balance what Stripe says became of it. */
export class CardRail implements WatchedRail {
  readonly name = "card";
  private polling = 0;
  private ordering = 0;
  private nextEventsAt: EpochMs = epochMs(0);
  /** Events from before then were asked for; null at the start. */
  private eventsUntil: EpochMs | null = null;
  /** What a payer is charged besides. */
  readonly fee: StripeConfig["fee"];

  constructor(private readonly deps: CardRailDeps) {
    this.fee = deps.fee;
  }

  /**
   * A payment, and the page on which it is made: the same ones however often they are asked for under an idempotency
   * key. Durable before Stripe is asked.
   */
  async order(request: CardRequest): Promise<Ordered | Refusal> {
    if (this.ordering === MAX_ORDERS) return tooManyOrders();
    this.ordering += 1;
    try {
      return await this.placedOrder(request);
    } finally {
      this.ordering -= 1;
    }
  }

  private async placedOrder({
    balanceId,
    amount,
    idempotencyKey,
    caps,
  }: CardRequest): Promise<Ordered | Refusal> {
    const { store, clock, random } = this.deps;
    const now = clock.now();
    const id = newId("pay", random);
    const added = await store.add(
      {
        ...JUST_CREATED,
        id,
        rail: "card",
        external: id,
        balanceId,
        keyId: null,
        amount,
        payer: null,
        order: orderText(newOrder(totalOf(amount, this.fee), this.deps.returnUrl(id))),
        idempotencyKey,
        isInline: false,
        gas: 0,
        createdAt: now,
        changedAt: now,
        nextPollAt: epochMs(now + POLL_MS),
      },
      caps,
    );
    if (added.kind === "capped") return capReached(added.cap);
    const { payment } = added;
    if (payment.rail !== "card" || payment.amount !== amount) return usedKey();
    const asking = await this.startPoll(payment);
    const checkout = await this.checkoutOf(asking);
    return { payment: await this.fold(asking, checkout), checkout };
  }

  /**
   * Schedules a poll of the payment, durably, and polls it at once unless too many polls are running.
   */
  private async handleEvent(id: PaymentId): Promise<void> {
    const { store, clock, onFault } = this.deps;
    // Another gateway's, perhaps, with the same account at Stripe.
    if ((await store.find(id))?.rail !== "card") return;
    const payment = await store.change(id, (present) => dueAt(present, clock.now()));
    if (this.polling < MAX_POLLS) {
      this.polling += 1;
      void this.poll(payment)
        .catch(onFault)
        .finally(() => {
          this.polling -= 1;
        });
    }
  }

  /**
   * Checks an event and notes whom it concerns; null where Stripe has not signed it. A payment that the event
   * does not name is read from Stripe.
   */
  async event(sent: SentEvent): Promise<{ readonly received: true } | null> {
    const { api, clock } = this.deps;
    const concern = await api.event(sent, clock.now());
    if (concern === null) return null;
    await this.note(concern);
    return { received: true };
  }

  /** Asks now and then for events that never came. The watch does not wait for it. */
  async prepare(): Promise<void> {
    const { clock, onFault } = this.deps;
    const now = clock.now();
    if (now < this.nextEventsAt) return;
    this.nextEventsAt = epochMs(now + EVENTS_EVERY_MS);
    void this.pollEvents(now).catch(onFault);
  }

  private async pollEvents(now: EpochMs): Promise<void> {
    for (const concern of await this.deps.api.takenBack(this.eventsUntil ?? epochMs(now - FIRST_EVENTS_MS)))
      await this.note(concern);
    this.eventsUntil = epochMs(now - EVENTS_EVERY_MS);
  }

  private async note(concern: Concern): Promise<void> {
    if (concern === "nothing of ours") return;
    const payment = "payment" in concern ? concern.payment : await this.deps.api.paymentOf(concern.intent);
    if (payment !== null) await this.handleEvent(payment);
  }

  /**
   * Takes the credit back, all of it or nothing, and then has Stripe give the money back. That it is taken is written
   * down before: else a dispute that comes after a crash, or next to it, would have it taken a second time.
   */
  async refund(payment: Payment): Promise<Payment | TooMuch | "not refundable" | "under way" | "no answer"> {
    const { store, pace, clock, onFault } = this.deps;
    const { id, state } = payment;
    if (state === "refunded") return payment;
    const until = epochMs(clock.now() + pace.leaseMs);
    let isStarted = false;
    const current = await store.change(id, (now) => {
      isStarted = isRefundable(now);
      if (!isStarted) return null;
      return {
        order: orderText({ ...orderOf(now), returning: { amount: booked(now), until } }),
        nextPollAt: until,
      };
    });
    if (!isStarted) return orderOf(current).returning === null ? "not refundable" : "under way";
    const { tooMuch } = await this.takeAll(current);
    if (tooMuch !== null) return tooMuch;
    try {
      const seen = await this.pollForOperator(
        await store.change(id, (present) => dueAt(present, clock.now())),
      );
      return seen.state === "refunded" ? seen : "no answer";
    } catch (error) {
      onFault(error);
      return "no answer";
    }
  }

  /** The operator does not see what another process is about to change: the later reading of Stripe decides. */
  private async pollForOperator(payment: Payment): Promise<Payment> {
    let seen = payment;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const pollNumber = orderOf(seen).polls;
      seen = await this.poll(seen);
      if (orderOf(seen).polls === pollNumber + 1) break;
    }
    return seen;
  }

  /** Decides about one that is held: its money becomes credit, as far as Stripe still has it, or goes back. */
  async resolve(payment: Payment, as: "credited" | "refunded", note: string | null): Promise<CardDecision> {
    if (as === "refunded") return payment.state === "held" ? this.refund(payment) : "not held";
    let refusal = null as "not held" | "worth unknown" | "under way" | null;
    const accepted = await this.deps.store.change(payment.id, (now) => {
      refusal = now.state !== "held" ? "not held" : now.amount === 0 ? "worth unknown" : null;
      if (orderOf(now).returning !== null) refusal = "under way";
      if (refusal !== null) return null;
      // The balance may have room by now for what it could not hold.
      const why = now.reason === TOO_MUCH ? null : now.reason;
      const order = { ...orderOf(now), isAccepted: true, isReturned: false, note: note ?? why };
      const decided = { ...now, reason: order.note, order: orderText(order) };
      return { reason: order.note, ...dueAt(decided, this.deps.clock.now()) };
    });
    if (refusal !== null) return refusal;
    try {
      return await this.pollForOperator(accepted);
    } catch (error) {
      this.deps.onFault(error);
      return "no answer";
    }
  }

  /** What `refund` has started, here or in a process that ended. */
  private async takeAll(payment: Payment): Promise<{ payment: Payment; tooMuch: TooMuch | null }> {
    const { store, clock, debit } = this.deps;
    const { id, balanceId } = payment;
    const { returning, refunds } = orderOf(payment);
    if (returning === null) return { payment, tooMuch: null };
    const { amount } = returning;
    const idempotencyKey = paymentKey(id, `refund:${refunds}`);
    const entry = { balanceId, idempotencyKey, note: `refund of ${id}`, at: clock.now() };
    const done = amount > 0 ? await debit({ ...entry, amount }) : null;
    const tooMuch = done !== null && "available" in done ? done : null;
    const after = await store.change(id, (now) => {
      const order = orderOf(now);
      // Another process was refused and has ended the refund, before this one took the credit: that is written down.
      const isTakenHere = tooMuch === null && amount > 0 && booked(now) >= amount && !order.isReturned;
      if (order.refunds !== refunds || (order.returning === null && !isTakenHere)) return null;
      // Another process that polled Stripe meanwhile has decided nothing: its answer is checked again.
      const due = (after: CardOrder) => dueAt({ ...now, order: orderText(after) }, clock.now());
      const after = { ...order, returning: null };
      if (tooMuch !== null) return due(after);
      // Repeated until Stripe has answered, it is the same refund there.
      const returned = { ...after, refunds: refunds + (order.isReturned ? 0 : 1), isReturned: true };
      return { ...due(returned), debited: amount, shouldBe: ZERO_USD };
    });
    return { payment: after, tooMuch };
  }

  /** Does what is to be done by what Stripe says now. */
  async poll(payment: Payment): Promise<Payment> {
    const now = this.deps.clock.now();
    const { session, returning } = orderOf(payment);
    if (returning !== null && now < returning.until) return payment;
    if (session === null && now > payment.createdAt + OPENED_WITHIN_MS)
      return this.deps.store.change(payment.id, (present) => unopened(present, now));
    await this.refundAtStripe((await this.takeAll(payment)).payment);
    const asking = await this.startPoll(payment);
    const after = await this.fold(asking, await this.checkoutOf(asking));
    const isWatched = isOpen(after) || orderOf(after).isReturned;
    const nextPollAt = isWatched ? epochMs(now + POLL_MS) : liftedAgainAt(after, this.deps.pace.leaseMs);
    // News that came meanwhile has another time, and is looked at for itself. While somebody refunds, nothing was decided.
    return this.deps.store.change(payment.id, (present) => {
      const isOurs = present.nextPollAt === asking.nextPollAt && isLatest(present, asking);
      return isOurs && orderOf(present).returning === null ? { nextPollAt } : null;
    });
  }

  /** What the operator has decided, here or in a process that ended. Where Stripe refuses, it says why when it is asked. */
  private async refundAtStripe(payment: Payment): Promise<void> {
    const { api, store, onFault } = this.deps;
    const { isReturned, refunds } = orderOf(payment);
    if (!isReturned) return;
    try {
      await api.refund(payment.transaction!, `${payment.id} ${refunds}`);
    } catch (error) {
      return onFault(error);
    }
    // From now on Stripe knows: were it to fail at the bank, the credit is given again.
    await store.change(payment.id, (present) => {
      const order = orderText({ ...orderOf(present), isReturned: false });
      return dueAt({ ...present, order }, present.nextPollAt);
    });
  }

  /** Written before the request to Stripe: a later request knows more, and decides. */
  private startPoll({ id }: Payment): Promise<Payment> {
    return this.deps.store.change(id, (present) => dueAt(present, present.nextPollAt));
  }

  private checkoutOf(payment: Payment): Promise<Checkout> {
    const { api } = this.deps;
    const { session, total, returnUrl } = orderOf(payment);
    if (session !== null) return api.checkout(session);
    const amount = centsOf(payment.amount);
    return api.open({
      payment: payment.id,
      amount,
      fee: (total - amount) as Cents,
      returnUrl,
      expiresAt: epochMs(payment.createdAt + OPEN_MS),
    });
  }

  /** Each step is decided again on the payment as it then is: another process may have taken it. */
  private async fold(asking: Payment, checkout: Checkout): Promise<Payment> {
    const { clock, pace, store } = this.deps;
    const at = { now: clock.now(), leaseMs: pace.leaseMs };
    const stepOf = (payment: Payment) => (isLatest(payment, asking) ? nextStep(payment, checkout, at) : null);
    let now = asking;
    for (let steps = 0; steps < MAX_STEPS; steps++) {
      const step = stepOf(now);
      if (step === null) break;
      const done = await this.take(now, step);
      now = await store.change(asking.id, (current) => done(stepOf(current)));
    }
    return now;
  }

  /** Does what a step does outside of its payment; returns what is then written, where it is still the step. */
  private async take(
    payment: Payment,
    step: CardStep,
  ): Promise<(next: CardStep | null) => PaymentChange | null> {
    const { balanceId, id } = payment;
    switch (step.kind) {
      case "change":
        return (next) => (next?.kind === "change" ? next.change : null);
      case "lift":
        await this.lift(balanceId);
        return (next) => (next?.kind === "lift" ? next.done : null);
      case "suspend":
        await this.deps.suspend(balanceId, `payment ${id}`);
        return (next) => (next?.kind === "suspend" ? next.done : null);
      default: {
        const taken = await this.takeBack(payment, step);
        return (next) => (next?.kind === "debit" && next.entry === step.entry ? next.done(taken) : null);
      }
    }
  }

  private async takeBack({ balanceId, id, state }: Payment, { entry, upTo }: DebitStep): Promise<NanoUsd> {
    const { clock, debit } = this.deps;
    const isDisputed = state === "disputed" || state === "charged_back";
    const done = await debit({
      balanceId,
      amount: { upTo },
      idempotencyKey: paymentKey(id, `back:${entry}`),
      note: `${isDisputed ? "dispute" : "refund"} of ${id}`,
      at: clock.now(),
    });
    return tookBack(done);
  }

  /** Unless another payment of the balance is disputed: that one may have been, while this was lifted. */
  private async lift(balance: BalanceId): Promise<void> {
    if (await this.isDisputed(balance)) return;
    await this.deps.lift(balance, "won a dispute");
    if (await this.isDisputed(balance)) await this.deps.suspend(balance, "another dispute");
  }

  private async isDisputed(balanceId: BalanceId): Promise<boolean> {
    for (const state of ["disputed", "charged_back"] as const) {
      const found = await this.deps.store.list({ balanceId, keyId: null, state }, 1, null);
      if (found.length > 0) return true;
    }
    return false;
  }
}

type DebitStep = Extract<CardStep, { kind: "debit" }>;

const isRefundable = (payment: Payment): boolean => {
  const { back, returning } = orderOf(payment);
  const isHere = payment.state === "credited" || payment.state === "held";
  return isHere && payment.transaction !== null && back === null && returning === null;
};

/** Due at that time. Counting the poll discards the answers to polls that are already running. */
const dueAt = (payment: Payment, nextPollAt: EpochMs | null): PaymentChange => {
  const order = orderOf(payment);
  return { nextPollAt, order: orderText({ ...order, polls: order.polls + 1 }) };
};

const isLatest = (payment: Payment, polled: Payment): boolean =>
  orderOf(payment).polls === orderOf(polled).polls;

export type CardDecision = Awaited<ReturnType<CardRail["refund"]>> | "not held" | "worth unknown";

/** No page could be opened; null where one was meanwhile. One that is being opened is looked at once it has run out. */
function unopened(payment: Payment, now: EpochMs): PaymentChange | null {
  if (orderOf(payment).session !== null) return null;
  const closesAt = epochMs(payment.createdAt + OPEN_MS);
  return {
    state: "expired",
    reason: "No checkout page could be opened.",
    nextPollAt: now < closesAt ? closesAt : null,
  };
}

/** The page may still be paid on. */
const isOpen = ({ state }: Payment): boolean => WAITING.has(state) && state !== "expired";

export interface CardRequest {
  readonly balanceId: BalanceId;
  readonly amount: NanoUsd;
  readonly idempotencyKey: string | null;
  readonly caps: readonly (AmountCap | CountCap)[];
}

export interface Ordered {
  readonly payment: Payment;
  readonly checkout: Checkout;
}

const tooManyOrders = (): Refusal =>
  refuse(
    "rate_limited",
    `Stripe is being asked for ${MAX_ORDERS} payments at this moment, which is the limit. Nothing was ordered. Retry in ${RETRY_S} s.`,
    { retryAfterS: RETRY_S },
  );

export interface CardRailDeps {
  readonly api: Pick<StripeApi, keyof StripeApi>;
  readonly store: PaymentStore;
  readonly pace: PaymentPace;
  readonly clock: Pick<Clock, "now">;
  readonly random: RandomBytes;
  readonly fee: StripeConfig["fee"];
  onFault(error: unknown): void;
  debit(debit: Debit): Promise<Credit | TooMuch>;
  /** After a chargeback; durable. */
  suspend(balance: BalanceId, note: string): Promise<void>;
  /** That suspension, and no other. */
  lift(balance: BalanceId, note: string): Promise<void>;
  /** Where the payer comes back to. */
  returnUrl(payment: PaymentId): string;
}

/** How long the page can be paid on; Stripe wants at least half an hour from when it is opened. */
const OPEN_MS = 60 * 60_000;
const OPENED_WITHIN_MS = 30 * 60_000;
/** At a time, of everybody: Stripe takes a hundred calls a second. */
const MAX_ORDERS = 16;
const RETRY_S = 5;
/** Polls that events have started at once; the watch makes the others. */
const MAX_POLLS = 16;
/** Between questions for events; each goes back as far beyond the one before, because events are listed late. */
const EVENTS_EVERY_MS = 10 * 60_000;
/** At the start: as long as Stripe repeats an event. */
const FIRST_EVENTS_MS = 3 * 24 * 60 * 60_000;
/** Between polls of an open page whose events do not come. */
const POLL_MS = 60_000;
/** Each time, somebody else has asked Stripe at the same moment. */
const MAX_TRIES = 5;
/** A payment that is credited and disputed at once takes five. */
const MAX_STEPS = 20;
