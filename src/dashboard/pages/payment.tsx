import { useEffect } from "preact/hooks";
import type { PaymentAnswer } from "../../api/payments.ts";
import { moment, usd } from "../format.ts";
import { useOwner } from "../owner.ts";
import { Crumb, Facts, Head } from "../parts/frame.tsx";
import { Loaded, Note } from "../parts/notice.tsx";
import { isSettled, PaymentState, RAILS } from "../parts/payment-table.tsx";
import { useGet } from "../resource.ts";

/** A payment, as it is now: whoever pays comes back here, and sees it become credit. */
export function PaymentPage({ id }: { id: string }) {
  const { api, refresh } = useOwner();
  const found = useGet<PaymentAnswer>(api, `v1/payments/${encodeURIComponent(id)}`);
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
      <Crumb to="credit" name="Credit" />
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
      more={of.reason !== null && <p class="small">{of.reason}</p>}
    >
      {SAID[of.state](usd(of.amount_usd))}
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
          ["Begun", moment(of.created_at)],
          ["Last changed", moment(of.changed_at)],
          ["Id", of.id, "mono"],
        ]}
      />
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
