import type { Quirks } from "../../catalog/catalog.ts";
import { EFFORTS, type Effort, type ReasoningWish } from "./conversation.ts";
import type { Saying } from "./saying.ts";

/**
 * How hard to think, between two ways of saying it: OpenAI's languages name efforts, Anthropic's older models
 * take a budget of tokens. The shares are those that OpenRouter documents for the same purpose.
 */
const SHARES: Readonly<Record<Effort, number>> = {
  minimal: 0.1,
  low: 0.2,
  medium: 0.5,
  high: 0.8,
  xhigh: 0.95,
  max: 0.95,
};

/**
 * Anthropic's least budget, and the most that is asked for without being named (docs.anthropic.com, "Extended
 * thinking").
 */
const LEAST_BUDGET = 1_024;
const MOST_BUDGET = 32_000;

/**
 * Budgets that efforts are told by where the ceiling says nothing: Claude Code's own steps are of this size.
 */
const BUDGET_STEPS: readonly [number, Effort][] = [
  [4_096, "low"],
  [16_384, "medium"],
];

/** The effort to name; null leaves it to the host. */
function effortOf({ effort, budgetTokens }: ReasoningWish, saying: Saying): Effort | null {
  if (effort !== null || budgetTokens === null) return effort;
  saying.omit("thinking.budget_tokens");
  return BUDGET_STEPS.find(([most]) => budgetTokens <= most)?.[1] ?? "high";
}

/**
 * The same where the model may not be asked, or where only the three middle efforts are known, as outside of
 * OpenAI.
 */
export function effortFor(wish: ReasoningWish, quirks: Quirks, saying: Saying): Effort | "none" | null {
  if (quirks.noReasoningEffort === true) {
    if (wish.off || wish.effort !== null || wish.budgetTokens !== null) saying.omit("reasoning.effort");
    return null;
  }
  if (wish.off) return "none";
  const effort = effortOf(wish, saying);
  return effort !== null && quirks.coreFieldsOnly === true ? CORE_EFFORTS[effort] : effort;
}

const CORE_EFFORTS = {
  minimal: "low",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "high",
  max: "high",
} as const satisfies Record<Effort, Effort>;

/** Tokens to think with under this ceiling, which they are a part of; null where it leaves no room. */
export function budgetOf({ effort, budgetTokens }: ReasoningWish, ceiling: number): number | null {
  const wished = budgetTokens ?? Math.min(MOST_BUDGET, Math.floor(ceiling * SHARES[effort ?? "medium"]));
  const budget = Math.min(Math.max(wished, LEAST_BUDGET), ceiling - 1);
  return budget < LEAST_BUDGET ? null : budget;
}

/** Anthropic's efforts have no `minimal`. */
export const anthropicEffort = (effort: Effort): Effort => (effort === EFFORTS[0] ? "low" : effort);
