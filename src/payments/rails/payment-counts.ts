import type { Figure } from "../../units/figure.ts";
import { overriding } from "../../units/overriding.ts";
import type { Payment, PaymentChange, PaymentState } from "../payment.ts";
import type { PaymentStore } from "../payment-store.ts";
import type { SanctionsFigures } from "./x402/sanctions.ts";

/** What payments have come to in this process since it began, for the operator's metrics. */
export class PaymentCounts {
  private readonly reached = new Map<PaymentState, number>();
  private creditedNano = 0;
  private lostNano = 0;
  private wastedGas = 0;

  constructor(
    /** Figures of the list of sanctioned addresses; null without one. */
    private readonly sanctions: () => SanctionsFigures | null,
  ) {}

  /** The store, with what is changed through it counted here. */
  counted(store: PaymentStore): PaymentStore {
    return overriding(store, {
      change: async (id, decide) => {
        let before: Payment | null = null;
        const noted = (payment: Payment): PaymentChange | null => {
          before = payment;
          return decide(payment);
        };
        const after = await store.change(id, noted);
        if (before !== null) this.note(before, after);
        return after;
      },
    });
  }

  figures(): Figure[] {
    return [
      ...SHOWN.map(([state, help]) => ({
        name: `gateway_payments_${state}`,
        help,
        value: this.reached.get(state) ?? 0,
        type: "counter" as const,
      })),
      {
        name: "gateway_payments_credited_usd",
        help: "USD credited by payments, less what was taken back because of them, since start.",
        value: this.creditedNano / 1e9,
      },
      {
        name: "gateway_payments_lost_usd",
        help: "USD that was to be taken back and was spent, since start.",
        value: this.lostNano / 1e9,
        type: "counter",
      },
      {
        name: "gateway_gas_wasted",
        help: "Gas used by transfers that failed on the chain, at the gas account's expense, since start.",
        value: this.wastedGas,
        type: "counter",
      },
      ...listFigures(this.sanctions()),
    ];
  }

  private note(before: Payment, after: Payment): void {
    this.creditedNano += after.credited - before.credited;
    this.lostNano += after.lost - before.lost;
    this.wastedGas += wastedGas(after) - wastedGas(before);
    if (after.state !== before.state) this.reached.set(after.state, (this.reached.get(after.state) ?? 0) + 1);
  }
}

const wastedGas = ({ gas, wastedAt }: Payment): number => (wastedAt === null ? 0 : gas);

/** The smallest of several processes' numbers of addresses is shown: 0 says that one of them lets nobody pay. */
function listFigures(list: SanctionsFigures | null): Figure[] {
  if (list === null) return [];
  const { addresses, ageS } = list;
  const count = {
    name: "gateway_sanctions_list_addresses",
    help: "Addresses in the sanctions list; 0 while it is unreadable, and nobody's payment is taken.",
    value: addresses,
    together: "least" as const,
  };
  const age = {
    name: "gateway_sanctions_list_age_seconds",
    help: "Time since the list of sanctioned addresses was changed.",
    together: "least" as const,
  };
  return ageS === null ? [count] : [count, { ...age, value: ageS }];
}

const SHOWN = [
  ["submitted", "Payments that were sent, or sent again after the chain was reorganised, since start."],
  ["credited", "Payments that were credited, since start."],
  ["failed", "Payments of which no money came, since start."],
  ["rejected", "Payments that were turned down by screening, since start."],
  ["held", "Payments that began to wait for the operator, since start."],
  ["disputed", "Payments that were disputed, since start."],
  ["charged_back", "Payments that were charged back, since start."],
] as const satisfies readonly (readonly [PaymentState, string])[];
