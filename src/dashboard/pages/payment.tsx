import { useEffect } from "preact/hooks";
import type { PaymentAnswer } from "../../api/payments.ts";
import { moment, usd } from "../format.ts";
import { useOwner } from "../owner.ts";
import { Head } from "../parts/frame.tsx";
import { Loaded, Note } from "../parts/notice.tsx";
import { isSettled, PaymentState, RAILS } from "../parts/payment-table.tsx";
import { useResource } from "../resource.ts";

/** A payment, as it is now: whoever pays comes back here, and sees it become credit. */
export function PaymentPage({ id }: { id: string }) {
  const { api, refresh } = useOwner();
  const found = useResource(() => api.get<PaymentAnswer>(`v1/payments/${encodeURIComponent(id)}`), [api, id]);
  const { data, error } = found;
  useEffect(() => {
    if (data === null || isSettled(data)) return;
    const timer = setTimeout(found.reload, LOOK_MS);
    return () => clearTimeout(timer);
  }, [data, error]);
  // The balance is shown on other pages.
  useEffect(() => {
    if (data?.state === "credited") refresh();
  }, [data?.state]);
  return (
    <>
      <p class="crumb">
        <a href="#/credit">Credit</a>
      </p>
      <Head title="Payment" />
      <Loaded of={found}>{(payment) => <PaymentView of={payment} />}</Loaded>
    </>
  );
}

const LOOK_MS = 2_000;

const PaymentView = ({ of }: { of: PaymentAnswer }) => (
  <>
    <Note
      tone={of.state === "credited" ? "good" : isSettled(of) && of.state !== "refunded" ? "warn" : "plain"}
    >
      <p>{SAID[of.state](usd(of.amount_usd))}</p>
      {of.reason !== null && <p class="small">{of.reason}</p>}
    </Note>
    <section class="card">
      <dl class="facts">
        <dt>State</dt>
        <dd>
          <PaymentState of={of} />
        </dd>
        <dt>Amount</dt>
        <dd>{usd(of.amount_usd)}</dd>
        <dt>Paid by</dt>
        <dd>
          {RAILS[of.rail]}
          {of.payer !== null && <span class="mono"> {of.payer}</span>}
        </dd>
        {of.transaction !== null && (
          <>
            <dt>Transaction</dt>
            <dd class="mono">{of.transaction}</dd>
          </>
        )}
        <dt>Begun</dt>
        <dd>{moment(of.created_at)}</dd>
        <dt>Last changed</dt>
        <dd>{moment(of.changed_at)}</dd>
        <dt>Id</dt>
        <dd class="mono">{of.id}</dd>
      </dl>
    </section>
  </>
);

/** What a state means to whoever pays. */
const SAID: Record<PaymentAnswer["state"], (amount: string) => string> = {
  created: (amount) => `${amount} are not paid yet. This page follows the payment by itself.`,
  submitted: (amount) => `${amount} are on their way. This page follows the payment by itself.`,
  confirming: (amount) =>
    `${amount} were seen, and are being confirmed. This page follows the payment by itself.`,
  credited: (amount) => `${amount} were added to the balance.`,
  expired: () => "This payment was not made in time. Nothing was charged.",
  failed: () => "This payment has failed. No credit was added for it.",
  unused: () => "This payment was not needed any more, and is not carried out.",
  rejected: () => "This payment was turned down before anything was moved.",
  held: (amount) => `${amount} need a decision of the gateway's operator.`,
  refunded: (amount) => `${amount} were refunded.`,
  disputed: (amount) => `${amount} are disputed, and what was left of them was taken back.`,
  charged_back: (amount) => `${amount} were charged back.`,
};
