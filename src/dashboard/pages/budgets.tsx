import { useState } from "preact/hooks";
import type { List } from "../../api/answers.ts";
import type { BudgetAnswer } from "../../api/budgets.ts";
import { moment } from "../format.ts";
import { useOwner } from "../owner.ts";
import { BudgetDialog, WINDOWS } from "../parts/budget-dialog.tsx";
import { Button } from "../parts/button.tsx";
import { Head } from "../parts/frame.tsx";
import { Meter } from "../parts/meter.tsx";
import { Empty, Loaded } from "../parts/notice.tsx";
import { useGet } from "../resource.ts";

/** Named spending caps that several keys can share. */
export function Budgets() {
  const { api } = useOwner();
  const budgets = useGet<List<BudgetAnswer>>(api, "v1/budgets");
  const [editing, setEditing] = useState<BudgetAnswer | "new" | null>(null);
  const close = () => setEditing(null);
  return (
    <>
      <Head title="Budgets" lead="A named spending cap that any number of keys share.">
        <Button label="New budget" look="primary" onClick={() => setEditing("new")} />
      </Head>
      <Loaded of={budgets}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No budgets yet">Create one, then choose it in the limits of a key.</Empty>
          ) : (
            <ul class="cards">
              {data.map((budget) => (
                <li key={budget.id} class="card key-card">
                  <div class="key-names">
                    <h2>{budget.name}</h2>
                    <p class="soft small">
                      {WINDOWS[budget.window]}
                      {budget.resets_at !== null && ` · resets ${moment(budget.resets_at)}`}
                    </p>
                    <Button
                      label="Change"
                      about={budget.name}
                      look="link"
                      onClick={() => setEditing(budget)}
                    />
                  </div>
                  <div class="key-meters">
                    <Meter label="Used" used={budget.used_usd} held={budget.held_usd} cap={budget.cap_usd} />
                  </div>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      {editing !== null && (
        <BudgetDialog
          of={editing === "new" ? null : editing}
          api={api}
          path="v1/budgets"
          onClose={close}
          onDone={() => {
            close();
            budgets.reload();
          }}
        />
      )}
    </>
  );
}
