import {
  type Cents,
  type Checkout,
  type CheckoutDispute,
  centsOf,
  nanoOf,
} from "../../src/payments/rails/stripe/checkout.ts";
import type { CheckoutOrder, StripeApi } from "../../src/payments/rails/stripe/stripe-api.ts";
import { epochMs } from "../../src/units/clock.ts";
import type { PaymentId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import type { Random } from "./random.ts";

/**
 * Stripe as far as card payments see it: pages that are paid or run out, refunds in parts, disputes that are won, lost,
 * and won afterwards. Events of it come late, twice and in any order, until they are received.
 */
export class SimulatedStripe {
  private readonly sessions = new Map<string, Session>();
  private readonly order: Session[] = [];
  private unsent: { readonly session: Session }[] = [];
  /** From then on, nothing fails and pages that are open run out. */
  private isCalm = false;

  constructor(
    private readonly random: Random,
    /** Some pay another amount than was asked for, or in another currency. */
    private readonly payers: { readonly isPaidOtherwise: boolean } = { isPaidOtherwise: false },
  ) {}

  /** What a gateway asks; a call may fail before it arrives, and after. */
  api(): Pick<StripeApi, keyof StripeApi> {
    const answered = async <Result>(run: () => Result): Promise<Result> => {
      if (!this.isCalm && this.random.chance(0.02)) throw new Error("Stripe is away");
      const result = run();
      if (!this.isCalm && this.random.chance(0.02)) throw new Error("the answer is lost");
      return result;
    };
    return {
      open: (order) => answered(() => checkoutOf(this.session(order))),
      checkout: (id) => answered(() => checkoutOf(this.sessions.get(id)!)),
      paymentOf: (intent) => answered(() => this.sessions.get(intent)!.payment),
      refund: (intent) => answered(() => this.refundRest(this.sessions.get(intent)!)),
      event: async ({ body }) => ({ intent: body }),
      takenBack: () => answered(() => []),
    };
  }

  /** Something may happen to one of the last payments. */
  happen(): void {
    if (this.order.length === 0) return;
    const among = Math.min(RECENT, this.order.length);
    const session = this.order[this.order.length - 1 - this.random.below(among)]!;
    if (this.befalls(session)) this.unsent.push({ session });
  }

  private befalls(session: Session): boolean {
    const { state, disputes, total, refunded, payment } = session;
    if (state !== "paid") {
      if (state !== "open") return false;
      session.state = this.random.chance(0.8) ? "paid" : "expired";
      if (this.payers.isPaidOtherwise && this.random.chance(0.2)) this.payOtherwise(session);
      return true;
    }
    // Nobody need know what became of one before the next one.
    const news = this.random.next();
    const dispute = disputes.find(({ outcome }) => outcome !== "won");
    if (news < 0.25 && disputes.length < MAX_DISPUTES) {
      const amount = (this.random.chance(0.5) ? total : 1 + this.random.below(total)) as Cents;
      disputes.push({ id: `dp_${payment}_${disputes.length}`, outcome: "open", amount });
      return true;
    }
    if (news < 0.7 && dispute !== undefined) {
      const isOver = this.random.chance(dispute.outcome === "open" ? 1 : 0.1);
      if (isOver) dispute.outcome = dispute.outcome === "lost" || this.random.chance(0.5) ? "won" : "lost";
      return isOver;
    }
    if (news < 0.75 && refunded > 0) {
      // It failed at the bank.
      session.refunded = this.random.below(refunded) as Cents;
      return true;
    }
    if (news < 0.85 && refunded < total) {
      const more = this.random.chance(0.3) ? total - refunded : 1 + this.random.below(total - refunded);
      session.refunded = (refunded + more) as Cents;
      return true;
    }
    return false;
  }

  private payOtherwise(session: Session): void {
    if (this.random.chance(0.4)) session.currency = "eur";
    else session.total = (1 + this.random.below(2 * session.total)) as Cents;
  }

  /** Events that are delivered now; `receive` rejects, or never ends, where one has to come again. */
  deliverEvents(receive: (intent: string) => Promise<void>): void {
    for (const event of [...this.unsent]) {
      if (!this.isCalm && this.random.chance(0.7)) continue;
      for (let copies = this.random.chance(0.1) ? 2 : 1; copies > 0; copies--)
        receive(event.session.payment).then(
          () => {
            this.unsent = this.unsent.filter((one) => one !== event);
          },
          () => {},
        );
    }
  }

  calm(): void {
    this.isCalm = true;
    for (const session of this.order) {
      if (session.state !== "open") continue;
      session.state = "expired";
      this.unsent.push({ session });
    }
  }

  get isDelivered(): boolean {
    return this.unsent.length === 0;
  }

  /** What is left of the payment with its operator, after the fee, of what was to be credited. */
  kept(payment: PaymentId, amount: NanoUsd): number {
    const session = this.sessions.get(payment);
    if (session?.state !== "paid") return 0;
    const { total, refunded, disputes } = session;
    let left = total - refunded;
    for (const dispute of disputes) if (dispute.outcome !== "won") left -= dispute.amount;
    const fee = session.orderedTotal - centsOf(session.amount);
    return Math.min(amount, nanoOf(Math.max(0, left - fee) as Cents));
  }

  stateOf(payment: PaymentId) {
    const session = this.sessions.get(payment);
    const isPaid = session?.state === "paid";
    return { isPaid, currency: session?.currency, isAsOrdered: session?.total === session?.orderedTotal };
  }

  isDisputed(payment: PaymentId): boolean {
    const session = this.sessions.get(payment);
    return session !== undefined && isLost(session);
  }

  /** The same one, however often it is asked for. */
  private session({ payment, amount, fee }: CheckoutOrder): Session {
    const known = this.sessions.get(payment);
    if (known !== undefined) return known;
    const total = (amount + fee) as Cents;
    const state = this.isCalm ? "expired" : "open";
    const created = { payment, orderedTotal: total, amount: nanoOf(amount) };
    const session: Session = {
      ...created,
      total,
      state,
      currency: "usd",
      refunded: 0 as Cents,
      disputes: [],
    };
    this.sessions.set(payment, session);
    this.order.push(session);
    return session;
  }

  private refundRest(session: Session): void {
    if (isLost(session)) throw new Error("it is disputed");
    if (session.refunded === session.total) return;
    session.refunded = session.total;
    this.unsent.push({ session });
  }
}

/** Session, PaymentIntent and payment have one name here. */
interface Session {
  readonly payment: PaymentId;
  readonly orderedTotal: Cents;
  /** To be credited. */
  readonly amount: NanoUsd;
  total: Cents;
  currency: string;
  state: "open" | "paid" | "expired";
  refunded: Cents;
  readonly disputes: { readonly id: string; outcome: CheckoutDispute["outcome"]; readonly amount: Cents }[];
}

const isLost = ({ disputes }: Session): boolean => disputes.some(({ outcome }) => outcome !== "won");

const checkoutOf = ({ payment, total, currency, state, refunded, disputes }: Session): Checkout => ({
  session: payment,
  url: null,
  expiresAt: epochMs(0),
  state,
  total,
  currency,
  intent: payment,
  payer: null,
  refunded,
  disputes: disputes.map((one) => ({ ...one })),
});

/** On one charge. */
const MAX_DISPUTES = 3;
/** Refunds and disputes pick one of this many latest charges. */
const RECENT = 40;
