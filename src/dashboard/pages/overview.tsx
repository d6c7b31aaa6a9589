import type { ReceiptAnswer } from "../answers.ts";
import type { List } from "../api.ts";
import { count, moment, usd } from "../format.ts";
import { useOwner } from "../owner.ts";
import { Head } from "../parts/frame.tsx";
import { Empty, Loaded } from "../parts/notice.tsx";
import { useResource } from "../resource.ts";
import { Figure } from "./credit.tsx";
import { ReceiptTable } from "./receipts.tsx";

/** Where things stand. */
export function Overview() {
  const { api, me } = useOwner();
  const latest = useResource(() => api.get<List<ReceiptAnswer>>("v1/receipts?limit=5"), [api]);
  const { open_tier } = me;
  return (
    <>
      <Head title="Overview" />
      <div class="grid-3">
        <Figure
          label="Available credit"
          value={usd(me.available_usd)}
          {...(me.held_usd > 0 ? { hint: `${usd(me.held_usd)} held by open requests` } : {})}
        />
        <Figure
          label="Free requests left today"
          value={count(Math.max(0, open_tier.limit - open_tier.used))}
          hint={`of ${count(open_tier.limit)}, anew ${moment(open_tier.resets_at)}`}
        />
      </div>
      <section aria-labelledby="latest">
        <h2 id="latest">Latest requests</h2>
        <Loaded of={latest}>
          {({ data }) =>
            data.length === 0 ? (
              <Empty title="Nothing sent yet">
                <p class="soft">
                  Try a model in the <a href="#/playground">playground</a>.
                </p>
              </Empty>
            ) : (
              <ReceiptTable rows={data} />
            )
          }
        </Loaded>
      </section>
    </>
  );
}
