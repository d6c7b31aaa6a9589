import { BUDGETS } from "../../api/budgets.ts";
import { OPERATOR } from "../../customers/keys/root.ts";
import { refused } from "../../units/errors/refusal.ts";
import type { Endpoint } from "../endpoint.ts";
import { changedBudget, listOfBudgets } from "../endpoints/budgets.ts";
import { operation } from "../operation.ts";
import { balanceNamed } from "./balances.ts";

/**
 * Budgets of any balance, for a user who is refused by a cap of their own and asks why: they may not be there
 * to raise it.
 */
export const adminBudgetEndpoints = (): Endpoint[] => [
  operation("GET /admin/balances/:id/budgets", BUDGETS.listForOperator, async ({ params }, deps) => {
    const balance = await balanceNamed(params.id, deps);
    return refused(balance) ? balance : listOfBudgets(balance, deps);
  }),
  operation(
    "PATCH /admin/balances/:id/budgets/:name",
    BUDGETS.changeForOperator,
    async ({ params, fields }, deps) => {
      const balance = await balanceNamed(params.id, deps);
      return refused(balance) ? balance : changedBudget(balance, params.name, fields, OPERATOR, deps);
    },
  ),
];
