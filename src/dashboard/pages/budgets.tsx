import type { BudgetAnswer } from "../../api/budgets.ts";
import { moment } from "../format.ts";
import { BudgetDialog, windowText } from "../parts/budget-dialog.tsx";
import { BudgetValues } from "../parts/budget-values.tsx";
import { Button } from "../parts/button.tsx";
import { Meter } from "../parts/meter.tsx";
import { Empty, Head, Listed } from "../parts/page.tsx";
import { useList } from "../resource.ts";

/** Named spending caps that several keys can share. */
export function Budgets() {
  const budgets = useList<BudgetAnswer>("v1/budgets");
  const onDone = budgets.reload;
  return (
    <>
      <Head title="Budgets" lead="A named spending cap that any number of keys share.">
        <Button
          label="New budget"
          variant="primary"
          dialog={<BudgetDialog of={null} path="v1/budgets" />}
          onDone={onDone}
        />
      </Head>
      <Listed
        of={budgets}
        empty={<Empty title="No budgets yet">Create one, then choose it in the limits of a key.</Empty>}
      >
        {(rows) => (
          <ul class="cards">
            {rows.map((budget) => (
              <li key={budget.id} class={budget.per === null ? "card key-card" : "card key-card tall"}>
                <div class="key-names">
                  <h2>{budget.name}</h2>
                  <p class="soft small">
                    {windowText(budget)}
                    {budget.resets_at !== null && ` · resets ${moment(budget.resets_at)}`}
                  </p>
                  <Button
                    label="Change"
                    about={budget.name}
                    variant="link"
                    dialog={<BudgetDialog of={budget} path="v1/budgets" />}
                    onDone={onDone}
                  />
                </div>
                <div class="cards">
                  {budget.per === null ? (
                    <Meter label="Used" used={budget.used_usd} of={budget} cap={budget.cap_usd} />
                  ) : (
                    <BudgetValues of={budget} />
                  )}
                </div>
              </li>
            ))}
          </ul>
        )}
      </Listed>
    </>
  );
}
