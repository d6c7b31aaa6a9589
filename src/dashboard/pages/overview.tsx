import type { List } from "../../api/answers.ts";
import type { KeyAnswer } from "../../api/keys.ts";
import type { ReceiptAnswer } from "../../api/receipts.ts";
import { count, moment, usd } from "../format.ts";
import { useOwner } from "../owner.ts";
import { Figure } from "../parts/figure.tsx";
import { FirstCall } from "../parts/first-call.tsx";
import { Head } from "../parts/frame.tsx";
import { keyNames } from "../parts/key-state.tsx";
import { Empty, Loaded } from "../parts/notice.tsx";
import { ReceiptTable } from "../parts/receipt-table.tsx";
import { UsageCharts } from "../parts/usage-charts.tsx";
import { useResource } from "../resource.ts";

/** Where things stand. */
export function Overview() {
  const { api, me } = useOwner();
  const latest = useResource(() => api.get<List<ReceiptAnswer>>("v1/receipts?limit=5"), [api]);
  const keys = useResource(() => api.get<List<KeyAnswer>>("v1/keys"), [api]);
  const { open_tier } = me;
  return (
    <>
      <Head title="Overview" />
      <div class="grid-3">
        <Figure label="Available credit" value={usd(me.available_usd)} hint={`of ${usd(me.balance_usd)}`} />
        <Figure label="Held now" value={usd(me.held_usd)} hint="by open requests" />
        <Figure
          label="Open Tier requests left"
          value={count(Math.max(0, open_tier.limit - open_tier.used))}
          hint={`of ${count(open_tier.limit)} until ${moment(open_tier.resets_at)}`}
        />
      </div>
      <UsageCharts />
      <section aria-labelledby="latest">
        <h2 id="latest">Latest requests</h2>
        <Loaded of={latest}>
          {({ data }) =>
            data.length === 0 ? (
              <>
                <Empty title="No requests yet">
                  <p class="soft">
                    Try a model in the <a href="#/playground">playground</a>, or from a program:
                  </p>
                </Empty>
                <FirstCall />
              </>
            ) : (
              <ReceiptTable rows={data} keyNames={keyNames(keys.data?.data ?? [])} />
            )
          }
        </Loaded>
      </section>
    </>
  );
}
