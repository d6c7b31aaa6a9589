import type { CreditAnswer } from "../../api/credits.ts";
import type { PaymentAnswer } from "../../api/payments.ts";
import type { List } from "../../api/schema.ts";
import { ApiRefusal } from "../api.ts";
import { atLeast, atMost, usd } from "../format.ts";
import { useOwner } from "../owner.ts";
import { CreditTable } from "../parts/credit-table.tsx";
import { ActionForm, limitText, readLimit, TextField, useField } from "../parts/field.tsx";
import { ShowOlder, TableCard, usePages } from "../parts/list.tsx";
import { Empty, Figure, Head, Loaded, Problem, Section } from "../parts/page.tsx";
import { paymentColumns } from "../parts/payment-columns.tsx";
import { useAction, useApi, useGet } from "../resource.ts";
import { AddCredit } from "./add-credit.tsx";

/** The balance, every credit that it had, and what was taken back. */
export function CreditPage() {
  const { me } = useOwner();
  const credits = useGet<List<CreditAnswer>>("v1/credits?limit=200");
  return (
    <>
      <Head title="Credit" lead="Prepaid: a request runs only if the balance covers its worst case." />
      <div class="grid-3">
        <Figure label="Available" value={usd(me.available_usd)} bound={atLeast(me)} />
        <Figure label="Held by open requests" value={usd(me.held_usd)} bound={atMost(me)} />
        <Figure label="Balance" value={usd(me.balance_usd)} />
      </div>
      <AddCredit />
      <LowCredit />
      <Payments />
      <Section title="History">
        <Loaded of={credits}>
          {(list) =>
            list.data.length === 0 ? (
              <Empty title="No credit yet">
                Models marked “Open Tier”, where there are any, need none:{" "}
                {me.open_tier.limit - me.open_tier.used} free requests are left today.
              </Empty>
            ) : (
              <CreditTable of={list} />
            )
          }
        </Loaded>
      </Section>
    </>
  );
}

/** Below which credit the owner is notified. */
function LowCredit() {
  const api = useApi();
  const { me, refresh } = useOwner();
  const below = useField(limitText(me.low_credit_usd));
  const save = useAction(async () => {
    await api.patch("v1/me", { low_credit_usd: readLimit(below.value) });
    refresh();
  });
  const { low_credit_default_usd: standard, account } = me;
  const to = account?.email === undefined ? "" : `a mail to ${account.email} and `;
  return (
    <Section title="Low credit" class="card stack">
      <ActionForm class="inline" action={save} submit="Save" variant="quiet">
        <TextField
          label="Notify me below, in dollars"
          inputMode="decimal"
          placeholder={standard === null ? "never" : String(standard)}
          hint={`Sends ${to}the event credit.low to your webhooks, once each time credit falls below it. Empty: the operator's amount; 0: never.`}
          {...below}
        />
      </ActionForm>
    </Section>
  );
}

/** What was paid for, or is about to be; nothing where nobody ever paid. */
function Payments() {
  const payments = usePages<PaymentAnswer>("v1/payments");
  const { data, error } = payments;
  if (error instanceof ApiRefusal && error.code === "unsupported_endpoint") return null;
  if (data === null || data.length === 0) return <Problem error={error} />;
  return (
    <Section title="Payments">
      <TableCard of={data} columns={paymentColumns(data, { href: (id) => `#/credit/${id}` })} />
      <ShowOlder of={payments} />
    </Section>
  );
}
