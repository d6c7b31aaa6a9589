import type { List } from "../api/answers.ts";
import type { BudgetAnswer } from "../api/budgets.ts";
import type { EntryAnswer } from "../api/catalog.ts";
import { useOwner } from "./owner.ts";
import type { KeyChoices } from "./parts/key-form.tsx";
import { useResource } from "./resource.ts";

/** What an owner can pick for a key; empty until it is known. */
export function useKeyChoices(): KeyChoices {
  const { api } = useOwner();
  const catalog = useResource(() => api.get<List<EntryAnswer>>("v1/catalog"), [api]);
  const budgets = useResource(() => api.get<List<BudgetAnswer>>("v1/budgets"), [api]);
  return {
    models: (catalog.data?.data ?? []).map(({ id }) => id),
    budgets: (budgets.data?.data ?? []).map(({ name }) => name),
  };
}
