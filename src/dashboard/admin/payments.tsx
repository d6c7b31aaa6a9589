import type { OperatorsPayment } from "../../api/payments.ts";
import { PAYMENT_STATES } from "../../payments/payment.ts";
import { usd, words } from "../format.ts";
import { type DialogEnds, FormDialog, useDialog } from "../parts/dialog.tsx";
import { Choice, TextField, useField } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { Empty, Listed } from "../parts/notice.tsx";
import { ShowOlder, usePages } from "../parts/pages.tsx";
import { PaymentTable } from "../parts/payment-table.tsx";
import { useQuery } from "../route.ts";
import { noted } from "./balance-dialog.ts";
import { useOperator } from "./operator.ts";
import { RoleButton } from "./role-button.tsx";

/** Everybody's payments: those that are held wait here for the operator. */
export function Payments() {
  const api = useOperator();
  const [{ state }, setFilters] = useQuery(FILTERS);
  const payments = usePages<OperatorsPayment>(api, `admin/payments${state === "" ? "" : `?state=${state}`}`);
  const { open: deciding, show: decide, ends } = useDialog<OperatorsPayment>(payments.reload);
  const Deciding = deciding?.state === "held" ? ResolveDialog : RefundDialog;
  return (
    <>
      <Head title="Payments" lead="Payments for credit. Held and disputed ones need your attention." />
      <div class="filters">
        <Choice
          label="State"
          value={state}
          onValue={(chosen) => setFilters({ state: chosen })}
          options={[["", "All states"], ...PAYMENT_STATES.map((one) => [one, words(one)] as const)]}
        />
      </div>
      <Listed of={payments} empty={<Empty title="No payments" />}>
        {(rows) => (
          <PaymentTable
            of={rows}
            about={(payment) => <About of={payment} onDecide={() => decide(payment)} />}
            columns={[["Lost", "end", ({ lost_usd }) => (lost_usd === 0 ? "—" : usd(lost_usd))]]}
          />
        )}
      </Listed>
      <ShowOlder of={payments} />
      {deciding !== null && <Deciding of={deciding} {...ends} />}
    </>
  );
}

const FILTERS = ["state"] as const;

const About = ({ of, onDecide }: { of: OperatorsPayment; onDecide: () => void }) => (
  <>
    {of.state === "held" && of.reason !== null && <div class="small">{of.reason}</div>}
    <div class="row">
      <a class="mono" href={`#/balances/${of.balance_id}`}>
        {of.balance_id}
      </a>
      {(of.state === "credited" || of.state === "held") && (
        <RoleButton label={of.state === "held" ? "Decide" : "Refund"} onClick={onDecide} />
      )}
    </div>
  </>
);

function RefundDialog({ of, onClose, onDone }: DecisionProps) {
  const api = useOperator();
  const refund = async () => {
    await api.post(`admin/payments/${of.id}/refund`);
    onDone();
  };
  return (
    <FormDialog title="Refund the payment" submit="Refund" danger act={refund} onClose={onClose}>
      <p>
        {usd(of.credited_usd)} are taken back from <span class="mono">{of.balance_id}</span>, if they are
        neither spent nor held.{" "}
        {of.rail === "card"
          ? "The card gets back everything that it was charged, including the fee."
          : "You send the money back yourself, because the gateway cannot."}
      </p>
    </FormDialog>
  );
}

/** The money is here, and not as it was ordered. */
function ResolveDialog({ of, onClose, onDone }: DecisionProps) {
  const api = useOperator();
  const as = useField("credited");
  const note = useField("");
  const resolve = async () => {
    await api.post(`admin/payments/${of.id}/resolve`, { as: as.value, ...noted(note.value) });
    onDone();
  };
  return (
    <FormDialog title="Decide about the payment" submit="Decide" act={resolve} onClose={onClose}>
      {of.reason !== null && <p>{of.reason}</p>}
      <Choice
        label="Decision"
        options={[
          ["credited", `credited with ${usd(of.amount_usd)}`],
          ["refunded", "refunded: the card gets its money back; stablecoins you have sent back"],
        ]}
        {...as}
      />
      <TextField label="Note" hint="The payer sees this note." {...note} />
    </FormDialog>
  );
}

interface DecisionProps extends DialogEnds {
  readonly of: OperatorsPayment;
}
