import { useState } from "preact/hooks";
import type { List } from "../../api/answers.ts";
import type { BudgetAnswer } from "../../api/budgets.ts";
import { roughUsd } from "../format.ts";
import { BudgetDialog, WINDOWS } from "../parts/budget-dialog.tsx";
import { Problem } from "../parts/notice.tsx";
import { TableCard } from "../parts/table.tsx";
import { useResource } from "../resource.ts";
import { useOperator } from "./operator.ts";

/** The caps that the owner of a balance has set by name; nothing where there are none. */
export function BalanceBudgets({ id }: { id: string }) {
  const api = useOperator();
  const path = `admin/balances/${id}/budgets`;
  const budgets = useResource(() => api.get<List<BudgetAnswer>>(path), [api, path]);
  const [editing, setEditing] = useState<BudgetAnswer | null>(null);
  if (budgets.data === null || budgets.data.data.length === 0) return <Problem error={budgets.error} />;
  return (
    <section aria-labelledby="budgets">
      <h2 id="budgets">Budgets</h2>
      <TableCard columns={["Budget", ["Window", "wide-only"], ["Used", "end"], ["Actions", "unseen"]]}>
        {budgets.data.data.map((budget) => (
          <tr key={budget.id}>
            <td>{budget.name}</td>
            <td class="wide-only">{WINDOWS[budget.window]}</td>
            <td class="end">
              {roughUsd(budget.used_usd + budget.held_usd)}
              <span class="soft"> of {roughUsd(budget.cap_usd)}</span>
            </td>
            <td class="end">
              <button type="button" class="link" onClick={() => setEditing(budget)}>
                Change<span class="unseen"> {budget.name}</span>
              </button>
            </td>
          </tr>
        ))}
      </TableCard>
      {editing !== null && (
        <BudgetDialog
          of={editing}
          api={api}
          path={path}
          canDelete={false}
          onClose={() => setEditing(null)}
          onDone={() => {
            setEditing(null);
            budgets.reload();
          }}
        />
      )}
    </section>
  );
}
