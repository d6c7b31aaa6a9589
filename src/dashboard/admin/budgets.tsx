import type { BudgetAnswer } from "../../api/budgets.ts";
import { atMost, roughUsd } from "../format.ts";
import { BudgetDialog, windowText } from "../parts/budget-dialog.tsx";
import { useDialog } from "../parts/dialog.tsx";
import { Section } from "../parts/frame.tsx";
import { Problem } from "../parts/notice.tsx";
import { type Column, TableCard, Unseen } from "../parts/table.tsx";
import { useList } from "../resource.ts";
import { useOperator } from "./operator.ts";
import { RoleButton } from "./role-button.tsx";

/** The caps that the owner of a balance has set by name; nothing where there are none. */
export function BalanceBudgets({ id }: { id: string }) {
  const api = useOperator();
  const path = `admin/balances/${id}/budgets`;
  const budgets = useList<BudgetAnswer>(api, path);
  const { open: editing, show: edit, ends } = useDialog<BudgetAnswer>(budgets.reload);
  if (budgets.data === null || budgets.data.length === 0) return <Problem error={budgets.error} />;
  const columns: Column<BudgetAnswer>[] = [
    ["Budget", "", ({ name }) => name],
    ["Window", "", windowText],
    [
      "Used",
      "end",
      ({ used_usd, held_usd, held_at, cap_usd, per }) => (
        <>
          {roughUsd(used_usd + held_usd) + atMost({ held_at })}
          <span class="soft">
            {per === null ? " of " : " by all, each of "}
            {roughUsd(cap_usd)}
          </span>
        </>
      ),
    ],
    [
      <Unseen key="actions">Actions</Unseen>,
      "end",
      (budget) => (
        <RoleButton label="Change" about={budget.name} variant="link" onClick={() => edit(budget)} />
      ),
    ],
  ];
  return (
    <Section title="Budgets">
      <TableCard of={budgets.data} by={(budget) => budget.id} columns={columns} />
      {editing !== null && <BudgetDialog of={editing} api={api} path={path} canDelete={false} {...ends} />}
    </Section>
  );
}
