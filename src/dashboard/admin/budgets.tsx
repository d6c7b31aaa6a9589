import type { BudgetAnswer } from "../../api/budgets.ts";
import { atMost, roughUsd } from "../format.ts";
import { BudgetDialog, windowText } from "../parts/budget-dialog.tsx";
import { actionsOf, type Column, TableCard } from "../parts/list.tsx";
import { Problem, Section } from "../parts/page.tsx";
import { useList } from "../resource.ts";
import { RoleButton } from "./role-button.tsx";

/** The caps that the owner of a balance has set by name; nothing where there are none. */
export function BalanceBudgets({ id }: { id: string }) {
  const path = `admin/balances/${id}/budgets`;
  const budgets = useList<BudgetAnswer>(path);
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
    actionsOf((budget) => (
      <RoleButton
        label="Change"
        about={budget.name}
        variant="link"
        dialog={<BudgetDialog of={budget} path={path} canDelete={false} />}
        onDone={budgets.reload}
      />
    )),
  ];
  return (
    <Section title="Budgets">
      <TableCard of={budgets.data} columns={columns} />
    </Section>
  );
}
