import type { List } from "../../api/answers.ts";
import type { CreditAnswer } from "../../api/credits.ts";
import type { PaymentAnswer } from "../../api/payments.ts";
import { ApiRefusal } from "../api.ts";
import { usd } from "../format.ts";
import { useOwner } from "../owner.ts";
import { AddCredit } from "../parts/add-credit.tsx";
import { CreditTable } from "../parts/credit-table.tsx";
import { Figure } from "../parts/figure.tsx";
import { Head, Section } from "../parts/frame.tsx";
import { Empty, Loaded, Problem } from "../parts/notice.tsx";
import { ShowOlder, usePages } from "../parts/pages.tsx";
import { PaymentTable } from "../parts/payment-table.tsx";
import { useGet } from "../resource.ts";

/** The balance, every credit that it had, and what was taken back. */
export function CreditPage() {
  const { api, me } = useOwner();
  const credits = useGet<List<CreditAnswer>>(api, "v1/credits?limit=200");
  return (
    <>
      <Head title="Credit" lead="Prepaid: a request runs only if the balance covers its worst case." />
      <div class="grid-3">
        <Figure label="Available" value={usd(me.available_usd)} of={me} />
        <Figure label="Held by open requests" value={usd(me.held_usd)} of={me} />
        <Figure label="Balance" value={usd(me.balance_usd)} />
      </div>
      <AddCredit />
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

/** What was paid for, or is about to be; nothing where nobody ever paid. */
function Payments() {
  const { api } = useOwner();
  const payments = usePages<PaymentAnswer>(api, "v1/payments");
  const { data, error } = payments;
  if (error instanceof ApiRefusal && error.code === "unsupported_endpoint") return null;
  if (data === null || data.length === 0) return <Problem error={error} />;
  return (
    <Section title="Payments">
      <PaymentTable of={data} href={(id) => `#/credit/${id}`} />
      <ShowOlder of={payments} />
    </Section>
  );
}
