import { useState } from "preact/hooks";
import type { OperatorsPayment } from "../../api/payments.ts";
import { PAYMENT_STATES } from "../../payments/payment.ts";
import { usd, words } from "../format.ts";
import { Dialog, DialogButtons } from "../parts/dialog.tsx";
import { Choice, Form } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { Empty, Loaded, Problem } from "../parts/notice.tsx";
import { ShowOlder, usePages } from "../parts/pages.tsx";
import { PaymentTable } from "../parts/payment-table.tsx";
import { useAction } from "../resource.ts";
import { useQuery } from "../route.ts";
import { useOperator } from "./operator.ts";

/** Everybody's payments: those that are held wait here for the operator. */
export function Payments() {
  const api = useOperator();
  const [{ state }, setFilters] = useQuery(FILTERS);
  const payments = usePages<OperatorsPayment>(api, `admin/payments${state === "" ? "" : `?state=${state}`}`);
  const [refunding, setRefunding] = useState<OperatorsPayment | null>(null);
  return (
    <>
      <Head title="Payments" lead="What people pay for credit. What is held, or disputed, needs a look." />
      <div class="filters">
        <Choice
          label="State"
          value={state}
          onValue={(chosen) => setFilters({ state: chosen })}
          options={[["", "All states"], ...PAYMENT_STATES.map((one) => [one, words(one)] as const)]}
        />
      </div>
      <Loaded of={payments}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No payments" />
          ) : (
            <PaymentTable
              of={rows}
              columns={[["Lost", "end wide-only"]]}
              about={(payment) => <About of={payment} onRefund={() => setRefunding(payment)} />}
              cells={({ lost_usd }) => <td class="end wide-only">{lost_usd === 0 ? "—" : usd(lost_usd)}</td>}
            />
          )
        }
      </Loaded>
      <ShowOlder of={payments} />
      {refunding !== null && (
        <RefundDialog
          of={refunding}
          onClose={() => setRefunding(null)}
          onDone={() => {
            setRefunding(null);
            payments.reload();
          }}
        />
      )}
    </>
  );
}

const FILTERS = ["state"] as const;

const About = ({ of, onRefund }: { of: OperatorsPayment; onRefund: () => void }) => (
  <div class="row">
    <a class="mono" href={`#/balances/${of.balance_id}`}>
      {of.balance_id}
    </a>
    {of.state === "credited" && (
      <button type="button" class="quiet" onClick={onRefund}>
        Refund
      </button>
    )}
  </div>
);

function RefundDialog({ of, onClose, onDone }: RefundDialogProps) {
  const api = useOperator();
  const refund = useAction(async () => {
    await api.post(`admin/payments/${of.id}/refund`);
    onDone();
  });
  return (
    <Dialog title="Refund the payment" onClose={onClose}>
      <Form onSubmit={refund.run}>
        <p>
          {usd(of.credited_usd)} are taken back from <span class="mono">{of.balance_id}</span>, if they are
          neither spent nor held.{" "}
          {of.rail === "card"
            ? "The card then gets back all that it was charged, with the fee."
            : "You then send the money back yourself: the gateway has no key to it."}
        </p>
        <Problem error={refund.error} />
        <DialogButtons submit="Refund" busy={refund.busy} danger onClose={onClose} />
      </Form>
    </Dialog>
  );
}

interface RefundDialogProps {
  readonly of: OperatorsPayment;
  readonly onClose: () => void;
  readonly onDone: () => void;
}
