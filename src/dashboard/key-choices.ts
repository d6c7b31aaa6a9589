import type { BudgetAnswer } from "../api/budgets.ts";
import type { EntryAnswer } from "../api/catalog.ts";
import type { KeyChoices } from "./parts/key-dialog.tsx";
import { useList } from "./resource.ts";

/** What an owner can pick for a key; empty until it is known. */
export function useKeyChoices(): KeyChoices {
  const catalog = useList<EntryAnswer>("v1/catalog");
  const budgets = useList<BudgetAnswer>("v1/budgets");
  return {
    models: (catalog.data ?? []).map(({ id }) => id),
    budgets: (budgets.data ?? []).map(({ name }) => name),
  };
}
