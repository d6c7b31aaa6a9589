import { asObject } from "../json/json.ts";
import type { GenerationRequest } from "../surface.ts";
import { budgetUnder } from "../vocabulary/reasoning.ts";
import type { BodyChanges } from "./body-changes.ts";

/**
 * Lowers the tokens to think with, `name` of the member `member`, along with the ceiling, which they are a
 * part of. Anthropic refuses a budget that fills the ceiling (“`max_tokens` must be greater than
 * `thinking.budget_tokens`”), and OpenRouter ("Reasoning Tokens") wants the same for Anthropic's models. A
 * budget above the client's own ceiling is not changed: with Anthropic it is one for all the thoughts between
 * calls of tools.
 */
export function lowerBudget(
  member: string,
  name: string,
  { json, maxOutputTokens: named }: GenerationRequest,
  ceiling: number,
  changes: BodyChanges,
): void {
  const settings = asObject(json[member]);
  const budget = settings?.[name];
  if (typeof budget !== "number" || (named !== null && budget >= named)) return;
  const left = budgetUnder(ceiling, budget);
  if (left === budget) return;
  if (left === null) changes.leaveOut(member, null, [member]);
  else changes.set(member, JSON.stringify({ ...settings, [name]: left }));
}
