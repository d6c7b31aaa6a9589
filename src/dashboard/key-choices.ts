import type { BudgetAnswer } from "../api/budgets.ts";
import type { EntryAnswer } from "../api/catalog.ts";
import { useOwner } from "./owner.ts";
import type { KeyChoices } from "./parts/key-dialog.tsx";
import { useList } from "./resource.ts";

/** What an owner can pick for a key; empty until it is known. */
export function useKeyChoices(): KeyChoices {
  const { api } = useOwner();
  const catalog = useList<EntryAnswer>(api, "v1/catalog");
  const budgets = useList<BudgetAnswer>(api, "v1/budgets");
  return {
    models: (catalog.data ?? []).map(({ id }) => id),
    budgets: (budgets.data ?? []).map(({ name }) => name),
  };
}
