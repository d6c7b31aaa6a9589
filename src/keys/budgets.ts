import { invalidField, type Refusal, refused } from "../errors/refusal.ts";
import type { BalanceId } from "../units/id.ts";
import { newId } from "../units/id.ts";
import type { NanoUsd } from "../units/usd.ts";
import type { WindowKind } from "../units/window.ts";
import { changedHands } from "./creation.ts";
import type { KeyDeps } from "./deps.ts";
import type { Budget } from "./key.ts";
import type { BalanceWithBudgets, BudgetDecision } from "./key-store.ts";
import { type Actor, rootOf } from "./root.ts";

export interface BudgetSpec {
  readonly name: string;
  readonly cap: NanoUsd;
  readonly window: WindowKind;
}

const MAX_BUDGETS = 200;

export function createBudget(
  deps: KeyDeps,
  balance: BalanceId,
  spec: BudgetSpec,
  by: Actor,
): Promise<Budget | Refusal> {
  const id = newId("bud", deps.random);
  return change(deps, balance, by, ({ budgets }) => {
    if (named(budgets, spec.name) !== undefined) {
      return invalidField(
        "name",
        `A budget named \`${spec.name}\` already exists. Change it with PATCH /v1/budgets/${spec.name}.`,
      );
    }
    if (budgets.length >= MAX_BUDGETS)
      return invalidField(
        "name",
        `The balance has ${MAX_BUDGETS} budgets, the most it can have. Delete one first.`,
      );
    return { kind: "put", budget: { id, balanceId: balance, ...spec } };
  });
}

/** What was spent stays counted, in every window: a new one shows what was spent in it. */
export function changeBudget(
  deps: KeyDeps,
  balance: BalanceId,
  name: string,
  spec: Partial<Omit<BudgetSpec, "name">>,
  by: Actor,
): Promise<Budget | Refusal> {
  return change(deps, balance, by, ({ budgets }) => {
    const budget = named(budgets, name);
    return budget === undefined ? unknownBudget(name) : { kind: "put", budget: { ...budget, ...spec } };
  });
}

/** Refused while a live key draws from it, because that would lift the key's cap in silence. */
export function dropBudget(
  deps: KeyDeps,
  balance: BalanceId,
  name: string,
  by: Actor,
): Promise<Budget | Refusal> {
  return change(deps, balance, by, ({ budgets }, drawnFrom) => {
    const budget = named(budgets, name);
    if (budget === undefined) return unknownBudget(name);
    const keys = drawnFrom.get(name) ?? 0;
    if (keys > 0) {
      return invalidField(
        "name",
        `Budget \`${name}\` caps ${keys} live ${keys === 1 ? "key" : "keys"}. First set their \`budget\` to another one or to null.`,
      );
    }
    return { kind: "drop", budget };
  });
}

export const unknownBudget = (name: string): Refusal =>
  invalidField("name", `This balance has no budget named \`${name}\`.`);

async function change(
  deps: KeyDeps,
  balance: BalanceId,
  by: Actor,
  decide: BudgetDecision,
): Promise<Budget | Refusal> {
  const done = await deps.store.changeBudgets(balance, (withBudgets, drawnFrom) =>
    rootOf(by, withBudgets.balance) === null ? changedHands() : decide(withBudgets, drawnFrom),
  );
  if (refused(done)) return done;
  deps.keyring.forgetBalance(balance);
  return done.budget;
}

const named = (budgets: BalanceWithBudgets["budgets"], name: string): Budget | undefined =>
  budgets.find((one) => one.name === name);
