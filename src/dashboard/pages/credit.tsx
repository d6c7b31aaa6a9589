import type { List } from "../../api/answers.ts";
import type { CreditAnswer } from "../../api/credits.ts";
import { usd } from "../format.ts";
import { useOwner } from "../owner.ts";
import { Operator } from "../parts/contact.tsx";
import { CreditTable } from "../parts/credit-table.tsx";
import { Figure } from "../parts/figure.tsx";
import { Head } from "../parts/frame.tsx";
import { Empty, Loaded } from "../parts/notice.tsx";
import { useResource } from "../resource.ts";

/** The balance, every credit that it had, and what was taken back. */
export function CreditPage() {
  const { api, me } = useOwner();
  const credits = useResource(() => api.get<List<CreditAnswer>>("v1/credits?limit=200"), [api]);
  return (
    <>
      <Head title="Credit" lead="Prepaid: a request runs only if the balance covers its worst case." />
      <div class="grid-3">
        <Figure label="Available" value={usd(me.available_usd)} />
        <Figure label="Held by open requests" value={usd(me.held_usd)} />
        <Figure label="Balance" value={usd(me.balance_usd)} />
      </div>
      <section class="card">
        <h2>Add credit</h2>
        <p>
          Credit is added by <Operator contact={me.contact} />. Give them the id of your balance; it is not
          secret:
        </p>
        <p class="mono id">{me.balance_id}</p>
      </section>
      <section aria-labelledby="history">
        <h2 id="history">History</h2>
        <Loaded of={credits}>
          {(list) =>
            list.data.length === 0 ? (
              <Empty title="No credit yet">
                <p class="soft">
                  Models marked “Open Tier”, where there are any, need none:{" "}
                  {me.open_tier.limit - me.open_tier.used} free requests are left today.
                </p>
              </Empty>
            ) : (
              <CreditTable of={list} />
            )
          }
        </Loaded>
      </section>
    </>
  );
}
