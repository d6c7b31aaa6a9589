import { useState } from "preact/hooks";
import type { BudgetAnswer } from "../../api/budgets.ts";
import { moment, roughUsd } from "../format.ts";
import { BudgetDialog, windowText } from "../parts/budget-dialog.tsx";
import { Button } from "../parts/button.tsx";
import { Meter } from "../parts/meter.tsx";
import { Empty, Head, Listed, Problem } from "../parts/page.tsx";
import { useGet, useList } from "../resource.ts";

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

/** What a budget's values spent, of which each has the cap for itself; looked up once somebody asks. */
function BudgetValues({ of }: { of: BudgetAnswer }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <p class="soft small">
        {roughUsd(of.used_usd)} used by all values, {roughUsd(of.cap_usd)} at most by each
      </p>
      {isOpen ? (
        <Values of={of} />
      ) : (
        <Button label="Show who spent most" about={of.name} variant="link" onClick={() => setIsOpen(true)} />
      )}
    </>
  );
}

function Values({ of }: { of: BudgetAnswer }) {
  const { data, error } = useGet<BudgetAnswer>(`v1/budgets/${encodeURIComponent(of.name)}`);
  if (data === null) return <Problem error={error} />;
  const { values = [], cap_usd } = data;
  if (values.length === 0) return <p class="soft small">Nothing was spent yet.</p>;
  return (
    <>
      {values.slice(0, MAX_SHOWN).map(({ value, used_usd }) => (
        <Meter key={value} label={value} used={used_usd} of={NOTHING_HELD} cap={cap_usd} />
      ))}
      {values.length > MAX_SHOWN && <p class="soft small">And others, who spent less.</p>}
    </>
  );
}

const MAX_SHOWN = 10;
/** What each value holds is not looked up. */
const NOTHING_HELD = { held_usd: 0, held_at: "all_processes" } as const;
