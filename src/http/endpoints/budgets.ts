import { BUDGETS, type BudgetAnswer, ChangedBudget, NewBudget } from "../../api/budgets.ts";
import { MAX_BUDGET_NAME } from "../../api/keys.ts";
import { type Refusal, refused } from "../../errors/refusal.ts";
import { changeBudget, createBudget, dropBudget, unknownBudget } from "../../keys/budgets.ts";
import type { Balance, Budget } from "../../keys/key.ts";
import { isoTime } from "../../units/clock.ts";
import { usdFromNano } from "../../units/usd.ts";
import { windowAt } from "../../units/window.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint, Exchange } from "../endpoint.ts";
import { readFields, readUsd } from "../fields.ts";
import { identify, ownersOnly } from "../identity.ts";
import { created, ok, type Reply } from "../reply.ts";

/** Named spending caps: contract §4. */
export const budgetEndpoints = (): Endpoint[] => [
  { method: "GET", path: "/v1/budgets", about: BUDGETS.list, handle: owned(listBudgetsOf) },
  { method: "POST", path: "/v1/budgets", about: BUDGETS.create, handle: owned(create) },
  { method: "GET", path: "/v1/budgets/:name", about: BUDGETS.show, handle: owned(show) },
  { method: "PATCH", path: "/v1/budgets/:name", about: BUDGETS.change, handle: owned(changeBudgetOf) },
  { method: "DELETE", path: "/v1/budgets/:name", about: BUDGETS.drop, handle: owned(drop) },
];

/** What is done to the budgets of a balance, whoever may. */
export type HandleOf = (balance: Balance, exchange: Exchange, deps: HttpDeps) => Promise<Reply | Refusal>;

function owned(handle: HandleOf): Endpoint["handle"] {
  return async (exchange, deps) => {
    const who = await identify(exchange, deps);
    if (refused(who)) return who;
    return who.kind === "key" ? ownersOnly("see or change budgets") : handle(who.balance, exchange, deps);
  };
}

export async function listBudgetsOf(balance: Balance, _: Exchange, deps: HttpDeps): Promise<Reply> {
  const budgets = await budgetsOf(balance, deps);
  return ok({ object: "list", data: await Promise.all(budgets.map((budget) => view(budget, deps))) });
}

async function show(balance: Balance, { params }: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const budget = (await budgetsOf(balance, deps)).find((one) => one.name === params.name);
  return budget === undefined ? unknownBudget(nameIn(params)) : ok(await view(budget, deps));
}

async function create(balance: Balance, exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const fields = await readFields(NewBudget, exchange, deps);
  if (refused(fields)) return fields;
  const cap = readUsd("cap_usd", fields.cap_usd);
  if (refused(cap)) return cap;
  const budget = await createBudget(deps.keyDeps, balance.id, {
    name: fields.name,
    window: fields.window,
    cap,
  });
  return refused(budget) ? budget : created(await view(budget, deps));
}

export async function changeBudgetOf(
  balance: Balance,
  exchange: Exchange,
  deps: HttpDeps,
): Promise<Reply | Refusal> {
  const fields = await readFields(ChangedBudget, exchange, deps);
  if (refused(fields)) return fields;
  const cap = fields.cap_usd === undefined ? undefined : readUsd("cap_usd", fields.cap_usd);
  if (refused(cap)) return cap;
  const budget = await changeBudget(deps.keyDeps, balance.id, nameIn(exchange.params), {
    ...(cap === undefined ? {} : { cap }),
    ...(fields.window === undefined ? {} : { window: fields.window }),
  });
  return refused(budget) ? budget : ok(await view(budget, deps));
}

async function drop(balance: Balance, { params }: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const budget = await dropBudget(deps.keyDeps, balance.id, nameIn(params));
  return refused(budget) ? budget : ok({ name: budget.name, deleted: true });
}

async function budgetsOf(balance: Balance, { keyDeps }: HttpDeps): Promise<readonly Budget[]> {
  return (await keyDeps.store.balanceWithBudgets(balance.id))?.budgets ?? [];
}

async function view(budget: Budget, { ledger, keyDeps }: HttpDeps): Promise<BudgetAnswer> {
  const now = keyDeps.clock.now();
  const { spent, held } = await ledger.budgetUse(budget, now);
  const { resetsAt } = windowAt(budget.window, now);
  return {
    id: budget.id,
    name: budget.name,
    cap_usd: usdFromNano(budget.cap),
    window: budget.window,
    used_usd: usdFromNano(spent),
    held_usd: usdFromNano(held),
    resets_at: resetsAt === null ? null : isoTime(resetsAt),
  };
}

const nameIn = (params: Exchange["params"]): string => (params.name ?? "").slice(0, MAX_BUDGET_NAME);
