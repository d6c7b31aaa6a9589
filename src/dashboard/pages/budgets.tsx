import { useState } from "preact/hooks";
import type { List } from "../../api/answers.ts";
import type { BudgetAnswer } from "../../api/budgets.ts";
import { moment } from "../format.ts";
import { useOwner } from "../owner.ts";
import { BudgetDialog, WINDOWS } from "../parts/budget-dialog.tsx";
import { Head } from "../parts/frame.tsx";
import { Meter } from "../parts/meter.tsx";
import { Empty, Loaded } from "../parts/notice.tsx";
import { useResource } from "../resource.ts";

/** Named spending caps that several keys can share. */
export function Budgets() {
  const { api } = useOwner();
  const budgets = useResource(() => api.get<List<BudgetAnswer>>("v1/budgets"), [api]);
  const [editing, setEditing] = useState<BudgetAnswer | "new" | null>(null);
  const close = () => setEditing(null);
  return (
    <>
      <Head title="Budgets" lead="A named spending cap that any number of keys share.">
        <button type="button" class="primary" onClick={() => setEditing("new")}>
          New budget
        </button>
      </Head>
      <Loaded of={budgets}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No budgets yet">
              <p class="soft">Create one, then choose it in the limits of a key.</p>
            </Empty>
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
                    <button type="button" class="link" onClick={() => setEditing(budget)}>
                      Change<span class="unseen"> {budget.name}</span>
                    </button>
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
