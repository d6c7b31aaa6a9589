import { useEffect } from "preact/hooks";
import type { PaymentAnswer } from "../../api/payments.ts";
import { moment, usd } from "../format.ts";
import { useOwner } from "../owner.ts";
import { CopiedId } from "../parts/copy-button.tsx";
import { Crumb, Facts, Head, Loaded, Note } from "../parts/page.tsx";
import { isSettled, PaymentState, RAILS } from "../parts/payment-columns.tsx";
import { useGet } from "../resource.ts";

/** A payment, as it is now: the payer comes back here, and sees it become credit. */
export function PaymentPage({ id }: { id: string }) {
  const { refresh } = useOwner();
  const found = useGet<PaymentAnswer>(`v1/payments/${encodeURIComponent(id)}`);
  const { data, error } = found;
  useEffect(() => {
    if (data === null || isSettled(data)) return;
    const timer = setTimeout(found.reload, POLL_MS);
    return () => clearTimeout(timer);
  }, [data, error]);
  // The balance is shown on other pages.
  useEffect(() => {
    if (data?.state === "credited") refresh();
  }, [data?.state]);
  return (
    <>
      <Crumb to="credit" name="Credit" />
      <Head title="Payment" />
      <Loaded of={found}>{(payment) => <PaymentView of={payment} />}</Loaded>
    </>
  );
}

const POLL_MS = 2_000;

const PaymentView = ({ of }: { of: PaymentAnswer }) => (
  <>
    <Note
      tone={of.state === "credited" ? "good" : isSettled(of) && of.state !== "refunded" ? "warn" : "plain"}
      more={of.reason !== null && <p class="small">{of.reason}</p>}
    >
      {MESSAGES[of.state](usd(of.amount_usd))}
    </Note>
    <section class="card">
      <Facts
        of={[
          ["State", <PaymentState key="state" of={of} />],
          ["Amount", usd(of.amount_usd)],
          [
            "Paid by",
            <>
              {RAILS[of.rail]}
              {of.payer !== null && <span class="mono"> {of.payer}</span>}
            </>,
          ],
          of.transaction === null ? null : ["Transaction", of.transaction, "mono"],
          ["Started", moment(of.created_at)],
          ["Last changed", moment(of.changed_at)],
          ["Id", <CopiedId key="id" label="the payment's id" value={of.id} />],
        ]}
      />
    </section>
  </>
);

/** What a state means to the payer. */
const MESSAGES: Record<PaymentAnswer["state"], (amount: string) => string> = {
  created: (amount) => `${amount} has not been paid yet. This page updates by itself.`,
  submitted: (amount) => `${amount} is on its way. This page updates by itself.`,
  confirming: (amount) => `${amount} has arrived and is being confirmed. This page updates by itself.`,
  credited: (amount) => `${amount} was added to the balance.`,
  expired: () => "This payment expired before it was made. Nothing was charged.",
  failed: () => "This payment has failed. No credit was added for it.",
  unused: () => "This payment was no longer needed and was not made.",
  rejected: () => "This payment was rejected before any money moved.",
  held: (amount) => `${amount} is waiting for a decision by the operator of this gateway.`,
  refunded: (amount) => `${amount} was refunded.`,
  disputed: (amount) => `${amount} is disputed, and what was left of it was taken back.`,
  charged_back: (amount) => `${amount} was charged back.`,
};
