import { type Static, Type } from "@sinclair/typebox";
import { TAG_NAME } from "../customers/keys/tags.ts";
import { type About, endpointsWith } from "./about.ts";
import { MAX_BUDGET_NAME } from "./keys.ts";
import * as t from "./schema.ts";

const name = Type.String({
  pattern: `^[A-Za-z0-9][A-Za-z0-9._-]{0,${MAX_BUDGET_NAME - 1}}$`,
  description: `a name of 1 to ${MAX_BUDGET_NAME} letters, digits, dots, dashes or underscores`,
});
export const BUDGET_WINDOWS = ["day", "week", "month", "total"] as const;
const window = t.choice(BUDGET_WINDOWS);
const per = Type.String({
  pattern: `^tag:${TAG_NAME}$`,
  description: "`tag:` and the name of a tag (`tag:user`): each of its values has the cap for itself",
});
const NewBudget = t.object({ name, cap_usd: t.usd, window, per: Type.Optional(per) });
const ChangedBudget = t.object({ cap_usd: Type.Optional(t.usd), window: Type.Optional(window) });
export type ChangedBudget = Static<typeof ChangedBudget>;

const BudgetAnswer = t.namedAnswer("Budget", {
  id: Type.String(),
  name: Type.String(),
  cap_usd: t.amountUsd,
  window: t.oneOf(BUDGET_WINDOWS),
  used_usd: t.amountUsd,
  held_usd: t.amountUsd,
  held_at: t.heldAt,
  resets_at: t.orNone(t.time),
  per: t.orNone(
    t.string(
      "`tag:` and the name of a tag of which each value has the cap for itself; what is used and held is that of all values. Null: all requests share the cap",
    ),
  ),
  values: Type.Optional(
    t.several(t.object({ value: Type.String(), used_usd: t.amountUsd }), {
      description:
        "of a budget that caps each value of a tag, where it is shown alone: those that spent most in its window, at most 50, by the newest 50,000 receipts; or the one that was asked for",
    }),
  ),
});
export type BudgetAnswer = Static<typeof BudgetAnswer>;
export type BudgetWindow = BudgetAnswer["window"];

export const BUDGETS = endpointsWith(
  { who: ["owner"], act: "see or change budgets" },
  {
    list: { summary: "Lists the budgets of a balance", answers: { 200: t.listOf(BudgetAnswer) } },
    create: {
      summary: "Creates a named spending cap",
      body: NewBudget,
      answers: { 201: BudgetAnswer },
    },
    show: {
      summary: "Shows a budget",
      query: {
        value: t.string("the value of the budget's tag to show, in place of those that spent most"),
      },
      answers: { 200: BudgetAnswer },
    },
    change: {
      summary: "Changes a budget's cap or window",
      body: ChangedBudget,
      answers: { 200: BudgetAnswer },
    },
    listForOperator: {
      summary: "Lists the budgets of any balance",
      who: ["admin"],
      answers: { 200: t.listOf(BudgetAnswer) },
    },
    changeForOperator: {
      summary: "Changes the cap or window of any balance's budget",
      who: ["admin"],
      body: ChangedBudget,
      answers: { 200: BudgetAnswer },
    },
    drop: {
      summary: "Deletes a budget that no key draws from",
      answers: { 200: t.object({ name: Type.String(), deleted: Type.Literal(true) }) },
    },
  },
) satisfies Record<string, About>;
