import { BUDGETS } from "../../api/budgets.ts";
import { refused } from "../../errors/refusal.ts";
import type { Endpoint } from "../endpoint.ts";
import { changeBudgetOf, type HandleOf, listBudgetsOf } from "../endpoints/budgets.ts";
import { balanceNamed } from "./balances.ts";
import { guarded } from "./token.ts";

/**
 * Budgets of any balance, for a user who is refused by a cap of their own and asks why: they may not be there
 * to raise it.
 */
export const adminBudgetEndpoints = (): Endpoint[] => [
  {
    method: "GET",
    path: "/admin/balances/:id/budgets",
    about: BUDGETS.listForOperator,
    handle: operated(listBudgetsOf),
  },
  {
    method: "PATCH",
    path: "/admin/balances/:id/budgets/:name",
    about: BUDGETS.changeForOperator,
    handle: operated(changeBudgetOf),
  },
];

const operated = (handle: HandleOf): Endpoint["handle"] =>
  guarded(async (exchange, deps) => {
    const balance = await balanceNamed(exchange.params.id, deps);
    return refused(balance) ? balance : handle(balance, exchange, deps);
  });
