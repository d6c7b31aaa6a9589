import { BUDGETS, type BudgetAnswer, type ChangedBudget } from "../../api/budgets.ts";
import { MAX_BUDGET_NAME } from "../../api/keys.ts";
import { changeBudget, createBudget, dropBudget, unknownBudget } from "../../customers/keys/budgets.ts";
import type { Balance, Budget } from "../../customers/keys/key.ts";
import { type Actor, OPERATOR } from "../../customers/keys/root.ts";
import { DAY_MS, isoTime } from "../../units/clock.ts";
import { type Refusal, refused } from "../../units/errors/refusal.ts";
import { usdFromNano } from "../../units/usd.ts";
import { windowAt } from "../../units/window.ts";
import { balanceNamed } from "../admin/balances.ts";
import { actorOf } from "../authentication.ts";
import type { HttpDeps } from "../deps.ts";
import { readUsd } from "../fields.ts";
import { operation } from "../operation.ts";
import { list } from "../reply.ts";
import { tooManyAtOnce } from "./usage.ts";

/**
 * Named spending caps: contract §4. Operators see and change those of any balance, for a user who is refused by one and may
 * not be there to raise it.
 */
export const budgetEndpoints = () => [
  operation("GET /v1/budgets", BUDGETS.list, ({ who }, deps) => listOfBudgets(who.balance, deps)),
  operation("POST /v1/budgets", BUDGETS.create, async ({ who, fields }, deps) => {
    const { name, window, per } = fields;
    const cap = readUsd("cap_usd", fields.cap_usd);
    if (refused(cap)) return cap;
    const spec = { name, window, cap, perTag: per?.slice(PER.length) ?? null };
    const budget = await createBudget(deps.keyDeps, who.balance.id, spec, actorOf(who));
    return refused(budget) ? budget : view(budget, deps);
  }),
  operation("GET /v1/budgets/:name", BUDGETS.show, async ({ who, params, query }, deps) => {
    const budget = (await budgetsOf(who.balance, deps)).find((one) => one.name === params.name);
    if (budget === undefined) return unknownBudget(shortened(params.name));
    if (!budget.perTag) return view(budget, deps);
    const values = query.value === null ? await valuesThatSpentMost(budget, deps) : [query.value];
    return values === null
      ? tooManyAtOnce()
      : { ...(await view(budget, deps)), values: await valueViews(budget, values, deps) };
  }),
  operation("PATCH /v1/budgets/:name", BUDGETS.change, ({ who, fields, params }, deps) =>
    changedBudget(who.balance, params.name, fields, actorOf(who), deps),
  ),
  operation("DELETE /v1/budgets/:name", BUDGETS.drop, async ({ who, params }, deps) => {
    const budget = await dropBudget(deps.keyDeps, who.balance.id, shortened(params.name), actorOf(who));
    return refused(budget) ? budget : { name: budget.name, deleted: true as const };
  }),
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

async function listOfBudgets(balance: Balance, deps: HttpDeps) {
  const budgets = await budgetsOf(balance, deps);
  return list(await Promise.all(budgets.map((budget) => view(budget, deps))));
}

async function changedBudget(
  balance: Balance,
  name: string,
  { cap_usd, window }: ChangedBudget,
  by: Actor,
  deps: HttpDeps,
): Promise<BudgetAnswer | Refusal> {
  const cap = cap_usd === undefined ? undefined : readUsd("cap_usd", cap_usd);
  if (refused(cap)) return cap;
  const change = { ...(cap === undefined ? {} : { cap }), ...(window === undefined ? {} : { window }) };
  const budget = await changeBudget(deps.keyDeps, balance.id, shortened(name), change, by);
  return refused(budget) ? budget : view(budget, deps);
}

async function budgetsOf(balance: Balance, { keyDeps }: HttpDeps): Promise<readonly Budget[]> {
  return (await keyDeps.store.balanceWithBudgets(balance.id))?.budgets ?? [];
}

/** By receipts, which alone have the values; null where too much is being summed up. */
async function valuesThatSpentMost(
  { balanceId, perTag, window }: Budget,
  { books, clock }: HttpDeps,
): Promise<readonly string[] | null> {
  const since = windowAt(window, clock.now()).startsAt;
  const scope = { balanceId, keyId: null, since, stretchMs: DAY_MS, tag: perTag ?? null };
  const sums = await books.usage(scope);
  return sums === null
    ? null
    : sums.tagValues.flatMap(({ value }) => (value === null ? [] : [value])).slice(0, MAX_VALUES);
}

/** The most first, as the books have them; values of other keys' requests spent nothing. */
async function valueViews(budget: Budget, values: readonly string[], { ledger, clock }: HttpDeps) {
  const now = clock.now();
  const spent = await Promise.all(values.map((value) => ledger.valueSpent(budget, value, now)));
  return values
    .map((value, at) => ({ value, used_usd: usdFromNano(spent[at]!) }))
    .filter(({ used_usd }) => used_usd > 0)
    .sort((one, other) => other.used_usd - one.used_usd);
}

async function view(budget: Budget, { ledger, clock }: HttpDeps): Promise<BudgetAnswer> {
  const now = clock.now();
  const { spent, held, heldAt } = await ledger.budgetUse(budget, now);
  const { resetsAt } = windowAt(budget.window, now);
  return {
    id: budget.id,
    name: budget.name,
    cap_usd: usdFromNano(budget.cap),
    window: budget.window,
    used_usd: usdFromNano(spent),
    held_usd: usdFromNano(held),
    held_at: heldAt,
    resets_at: resetsAt === null ? null : isoTime(resetsAt),
    per: budget.perTag ? `${PER}${budget.perTag}` : null,
  };
}

const PER = "tag:";
const MAX_VALUES = 50;

/** No longer than a name may be. */
const shortened = (name: string): string => name.slice(0, MAX_BUDGET_NAME);
