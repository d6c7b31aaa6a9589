import { type Clock, type EpochMs, epochMs } from "../../../units/clock.ts";
import type { BalanceId } from "../../../units/id.ts";
import type { Payment, PaymentChange, PaymentState } from "../../payment.ts";
import type { PaymentStore } from "../../payment-store.ts";
import type { PaymentPace } from "../payment-pace.ts";
import { RAN_OUT } from "./next-step.ts";

/** Changes to payments, and which balances have one that may have been sent, in this process. */
export class PaymentsUnderWay {
  /** Bounded by the payments under way. */
  private readonly ids = new Map<BalanceId, Payment["id"]>();

  constructor(private readonly deps: UnderWayDeps) {}

  of(balanceId: BalanceId): Payment["id"] | undefined {
    return this.ids.get(balanceId);
  }

  /** What other gateways have found out. */
  async refresh(): Promise<void> {
    for (const id of [...this.ids.values()]) this.note((await this.deps.store.find(id))!);
  }

  note(payment: Payment): Payment {
    const { balanceId, id } = payment;
    if (!isDecided(payment)) this.ids.set(balanceId, id);
    else if (this.ids.get(balanceId) === id) this.ids.delete(balanceId);
    return payment;
  }

  async change(payment: Payment, decide: (payment: Payment) => PaymentChange | null): Promise<Payment> {
    return this.note(await this.deps.store.change(payment.id, decide));
  }

  /** Decided again on what is written: what somebody else has found out meanwhile stands. */
  stillChange(payment: Payment, change: PaymentChange): Promise<Payment> {
    return this.change(payment, ({ state }) => (state === payment.state ? change : null));
  }

  /** When the watch looks at it again. */
  later(): EpochMs {
    return epochMs(this.deps.clock.now() + this.deps.pace.watchMs);
  }
}

export interface UnderWayDeps {
  readonly store: PaymentStore;
  readonly pace: PaymentPace;
  readonly clock: Clock;
}

export const isDecided = ({ rail, state, reason }: Payment): boolean =>
  rail !== "x402" || !UNDER_WAY.has(state) || reason === RAN_OUT;

export const UNDER_WAY: ReadonlySet<PaymentState> = new Set(["created", "submitted", "confirming"]);
