import { invalidField, type Refusal, refused } from "../../units/errors/refusal.ts";
import type { BalanceId } from "../../units/id.ts";
import { newId } from "../../units/id.ts";
import type { NanoUsd } from "../../units/usd.ts";
import type { WindowKind } from "../../units/window.ts";
import type { KeyDeps } from "./deps.ts";
import type { Budget } from "./key.ts";
import type { BudgetPut } from "./key-store.ts";
import { type Actor, changedHands, rootOf } from "./root.ts";

export interface BudgetSpec {
  readonly name: string;
  readonly cap: NanoUsd;
  readonly window: WindowKind;
  /** See `Budget`. */
  readonly perTag: string | null;
}

const MAX_BUDGETS = 200;

export function createBudget(
  deps: KeyDeps,
  balance: BalanceId,
  spec: BudgetSpec,
  by: Actor,
): Promise<Budget | Refusal> {
  const id = newId("bud", deps.random);
  return put(deps, balance, spec.name, by, ({ known, isFull }) => {
    if (known !== null) {
      return invalidField(
        "name",
        `A budget named \`${spec.name}\` already exists. Change it with PATCH /v1/budgets/${spec.name}.`,
      );
    }
    if (isFull)
      return invalidField(
        "name",
        `The balance has ${MAX_BUDGETS} budgets, the most it can have. Delete one first.`,
      );
    return { id, balanceId: balance, ...spec };
  });
}

/** What was spent stays counted, in every window: a new one shows what was spent in it. */
export function changeBudget(
  deps: KeyDeps,
  balance: BalanceId,
  name: string,
  spec: Partial<Pick<BudgetSpec, "cap" | "window">>,
  by: Actor,
): Promise<Budget | Refusal> {
  return put(deps, balance, name, by, ({ known }) => {
    if (known === null) return unknownBudget(name);
    // Each value is counted in one window alone.
    if (known.perTag && spec.window !== undefined && spec.window !== known.window)
      return invalidField(
        "window",
        `The window of a budget that caps each value of a tag cannot change. Create another budget, and set the keys' \`budget\` to it.`,
      );
    return { ...known, ...spec };
  });
}

/** Refused while a live key draws from it, because that would lift the key's cap in silence. */
export function dropBudget(
  deps: KeyDeps,
  balance: BalanceId,
  name: string,
  by: Actor,
): Promise<Budget | Refusal> {
  const dropped = deps.store.dropBudget(balance, name, ({ balance, known, drawnFrom }) => {
    if (rootOf(by, balance) === null) return changedHands();
    if (known === null) return unknownBudget(name);
    if (drawnFrom > 0) {
      return invalidField(
        "name",
        `Budget \`${name}\` caps ${drawnFrom} live ${drawnFrom === 1 ? "key" : "keys"}. First set their \`budget\` to another one or to null.`,
      );
    }
    return known;
  });
  return forgotten(deps, balance, dropped);
}

export const unknownBudget = (name: string): Refusal =>
  invalidField("name", `This balance has no budget named \`${name}\`. Create it with POST /v1/budgets.`);

function put(
  deps: KeyDeps,
  balance: BalanceId,
  name: string,
  by: Actor,
  decide: BudgetPut,
): Promise<Budget | Refusal> {
  const changed = deps.store.putBudget(balance, name, MAX_BUDGETS, (state) =>
    rootOf(by, state.balance) === null ? changedHands() : decide(state),
  );
  return forgotten(deps, balance, changed);
}

/** From its answer on, requests go by what was changed. */
async function forgotten(
  { keyring }: KeyDeps,
  balance: BalanceId,
  change: Promise<Budget | Refusal>,
): Promise<Budget | Refusal> {
  const budget = await change;
  if (!refused(budget)) keyring.forgetBalance(balance);
  return budget;
}
