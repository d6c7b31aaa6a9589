import type { OperatorsPayment } from "../../api/payments.ts";
import { PAYMENT_STATES } from "../../payments/payment.ts";
import { usd, words } from "../format.ts";
import { FormDialog } from "../parts/dialog.tsx";
import { Choice, noted, TextField, useField } from "../parts/field.tsx";
import { Rows, usePages } from "../parts/list.tsx";
import { Empty, Head } from "../parts/page.tsx";
import { paymentColumns } from "../parts/payment-columns.tsx";
import { useApi } from "../resource.ts";
import { useFilters } from "../route.ts";
import { BalanceId } from "./balance-link.tsx";
import { RoleButton } from "./role-button.tsx";

/** Everybody's payments: those that are held wait here for the operator. */
export function Payments() {
  const { filters, field } = useFilters(["state"]);
  const payments = usePages<OperatorsPayment>("admin/payments", filters);
  return (
    <>
      <Head title="Payments" lead="Payments for credit. Held and disputed ones need your attention." />
      <div class="filters">
        <Choice label="State" all="All states" options={PAYMENT_STATES} nameOf={words} {...field("state")} />
      </div>
      <Rows
        of={payments}
        empty={<Empty title="No payments" />}
        columns={(rows) => [
          ...paymentColumns(rows, { about: (one) => <About of={one} onDecided={payments.reload} /> }),
          ["Lost", "end", ({ lost_usd }) => (lost_usd === 0 ? "—" : usd(lost_usd))],
        ]}
      />
    </>
  );
}

function About({ of, onDecided }: { of: OperatorsPayment; onDecided: () => void }) {
  const isHeld = of.state === "held";
  return (
    <>
      {isHeld && of.reason !== null && <div class="small">{of.reason}</div>}
      <div class="row">
        <BalanceId id={of.balance_id} />
        {(of.state === "credited" || isHeld) && (
          <RoleButton
            label={isHeld ? "Decide" : "Refund"}
            dialog={isHeld ? <ResolveDialog of={of} /> : <RefundDialog of={of} />}
            onDone={onDecided}
          />
        )}
      </div>
    </>
  );
}

function RefundDialog({ of }: { of: OperatorsPayment }) {
  const api = useApi();
  const refund = () => api.post(`admin/payments/${of.id}/refund`);
  return (
    <FormDialog title="Refund the payment" submit="Refund" danger act={refund}>
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
function ResolveDialog({ of }: { of: OperatorsPayment }) {
  const api = useApi();
  const as = useField("credited");
  const note = useField("");
  const resolve = () => api.post(`admin/payments/${of.id}/resolve`, { as: as.value, ...noted(note.value) });
  return (
    <FormDialog title="Decide about the payment" submit="Decide" act={resolve}>
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
