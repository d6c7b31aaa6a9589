import type { ReceiptAnswer } from "../../api/receipts.ts";
import { atLeast, atMost, count, moment, usd } from "../format.ts";
import { useOwner } from "../owner.ts";
import { FirstCall } from "../parts/first-call.tsx";
import { Empty, Figure, Head, Listed, Section } from "../parts/page.tsx";
import { ReceiptTable } from "../parts/receipt-table.tsx";
import { UsageCharts } from "../parts/usage-charts.tsx";
import { useList } from "../resource.ts";

/** Where things stand. */
export function Overview() {
  const { me } = useOwner();
  const latest = useList<ReceiptAnswer>("v1/receipts?limit=5");
  const { open_tier } = me;
  return (
    <>
      <Head title="Overview" />
      <div class="grid-3">
        <Figure
          label="Available credit"
          value={usd(me.available_usd)}
          bound={atLeast(me)}
          hint={`of ${usd(me.balance_usd)}`}
        />
        <Figure label="Held now" value={usd(me.held_usd)} bound={atMost(me)} hint="by open requests" />
        <Figure
          label="Open Tier requests left"
          value={count(Math.max(0, open_tier.limit - open_tier.used))}
          bound={atLeast(open_tier)}
          hint={`of ${count(open_tier.limit)} until ${moment(open_tier.resets_at)}`}
        />
      </div>
      <UsageCharts />
      <Section title="Latest requests">
        <Listed
          of={latest}
          empty={
            <>
              <Empty title="No requests yet">
                Try a model in the <a href="#/playground">playground</a>, or from a program:
              </Empty>
              <FirstCall />
            </>
          }
        >
          {(rows) => <ReceiptTable rows={rows} keysAt="v1/keys" />}
        </Listed>
      </Section>
    </>
  );
}
