import { type Refusal, refuse, refused } from "../errors/refusal.ts";
import type { BalanceId } from "../units/id.ts";
import { newId } from "../units/id.ts";
import type { NanoUsd } from "../units/usd.ts";
import type { WindowKind } from "../units/window.ts";
import type { KeyDesk } from "./desk.ts";
import type { Budget } from "./key.ts";
import type { Estate } from "./key-store.ts";

export interface BudgetWish {
  readonly name: string;
  readonly cap: NanoUsd;
  readonly window: WindowKind;
}

const MAX_BUDGETS = 200;

export function createBudget(desk: KeyDesk, balance: BalanceId, wish: BudgetWish): Promise<Budget | Refusal> {
  const id = newId("bud", desk.random);
  return change(desk, balance, ({ budgets }) => {
    if (named(budgets, wish.name) !== undefined) {
      return invalid(
        "name",
        `A budget named \`${wish.name}\` already exists. Change it with PATCH /v1/budgets/${wish.name}.`,
      );
    }
    if (budgets.length >= MAX_BUDGETS)
      return invalid(
        "name",
        `The balance has ${MAX_BUDGETS} budgets, the most it can have. Delete one first.`,
      );
    return { kind: "put", budget: { id, balanceId: balance, ...wish } };
  });
}

/** What was spent stays counted, in every window: a new one shows what was spent in it. */
export function changeBudget(
  desk: KeyDesk,
  balance: BalanceId,
  name: string,
  wish: Partial<Omit<BudgetWish, "name">>,
): Promise<Budget | Refusal> {
  return change(desk, balance, ({ budgets }) => {
    const budget = named(budgets, name);
    return budget === undefined ? unknownBudget(name) : { kind: "put", budget: { ...budget, ...wish } };
  });
}

/** Refused while a live key draws from it, because that would lift the key's cap in silence. */
export function dropBudget(desk: KeyDesk, balance: BalanceId, name: string): Promise<Budget | Refusal> {
  return change(desk, balance, ({ budgets }, drawnFrom) => {
    const budget = named(budgets, name);
    if (budget === undefined) return unknownBudget(name);
    const keys = drawnFrom.get(name) ?? 0;
    if (keys > 0) {
      return invalid(
        "name",
        `Budget \`${name}\` caps ${keys} live ${keys === 1 ? "key" : "keys"}. First set their \`budget\` to another one or to null.`,
      );
    }
    return { kind: "drop", budget };
  });
}

export const unknownBudget = (name: string): Refusal =>
  invalid("name", `This balance has no budget named \`${name}\`.`);

async function change(
  desk: KeyDesk,
  balance: BalanceId,
  decide: Parameters<KeyDesk["store"]["changeBudgets"]>[1],
): Promise<Budget | Refusal> {
  const done = await desk.store.changeBudgets(balance, decide);
  if (refused(done)) return done;
  desk.keyring.forgetEstate(balance);
  return done.budget;
}

const named = (budgets: Estate["budgets"], name: string): Budget | undefined =>
  budgets.find((one) => one.name === name);

const invalid = (param: string, message: string): Refusal => refuse("invalid_request", message, { param });
