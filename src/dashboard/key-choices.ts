import type { List } from "../api/answers.ts";
import type { BudgetAnswer } from "../api/budgets.ts";
import type { EntryAnswer } from "../api/catalog.ts";
import { useOwner } from "./owner.ts";
import type { KeyChoices } from "./parts/key-form.tsx";
import { useGet } from "./resource.ts";

/** What an owner can pick for a key; empty until it is known. */
export function useKeyChoices(): KeyChoices {
  const { api } = useOwner();
  const catalog = useGet<List<EntryAnswer>>(api, "v1/catalog");
  const budgets = useGet<List<BudgetAnswer>>(api, "v1/budgets");
  return {
    models: (catalog.data?.data ?? []).map(({ id }) => id),
    budgets: (budgets.data?.data ?? []).map(({ name }) => name),
  };
}
