import type { ComponentChildren } from "preact";
import type { PaymentAnswer } from "../../api/payments.ts";
import { moment, usdColumn, words } from "../format.ts";
import type { Column } from "./list.tsx";

type Listed = Pick<PaymentAnswer, "id" | "rail" | "state" | "amount_usd" | "created_at" | "payer" | "reason">;

/** What a payment has in its row; `about` is beneath its time. */
export function paymentColumns<P extends Listed>(
  rows: readonly P[],
  { href, about }: PaymentLinks<P>,
): readonly Column<P>[] {
  const usd = usdColumn(rows.map(({ amount_usd }) => amount_usd));
  const time = ({ id, created_at }: P) =>
    href === undefined ? moment(created_at) : <a href={href(id)}>{moment(created_at)}</a>;
  const paid = (payment: P) => (
    <>
      {time(payment)}
      <div class="soft small">
        {RAILS[payment.rail]}
        {payment.payer !== null && ` · ${shortened(payment.payer)}`}
      </div>
      {about?.(payment)}
    </>
  );
  return [
    ["Payment", "", paid],
    ["State", "state", (payment) => <PaymentState of={payment} />],
    ["Amount", "end", ({ amount_usd }) => usd(amount_usd)],
  ];
}

interface PaymentLinks<P> {
  readonly href?: (id: string) => string;
  readonly about?: (payment: P) => ComponentChildren;
}

/** An address by its ends, as wallets show them. */
const shortened = (payer: string): string =>
  payer.length > LONGEST_PAYER ? `${payer.slice(0, 6)}…${payer.slice(-4)}` : payer;

const LONGEST_PAYER = 24;

export const RAILS: Record<PaymentAnswer["rail"], string> = { x402: "Wallet", card: "Card" };

export const PaymentState = ({ of: { state, reason } }: { of: Pick<Listed, "state" | "reason"> }) => (
  <span class={`tag ${TONES[state] ?? "plain"}-tag`} title={reason ?? undefined}>
    {words(state)}
  </span>
);

/** Nothing will change any more by itself. */
export const isSettled = ({ state }: Pick<Listed, "state">): boolean => !UNDER_WAY.has(state);

const UNDER_WAY: ReadonlySet<string> = new Set(["created", "submitted", "confirming"]);

const TONES: Partial<Record<PaymentAnswer["state"], string>> = {
  credited: "good",
  held: "warn",
  disputed: "warn",
  failed: "bad",
  rejected: "bad",
  charged_back: "bad",
};
