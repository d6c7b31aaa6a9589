import { type Conversation, EFFORTS, type Effort, type ReasoningSettings } from "./conversation.ts";
import type { TranslationReport } from "./translation-report.ts";

/**
 * How hard to think, between two ways of report it: OpenAI's languages name efforts, Anthropic's older models
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
const MIN_BUDGET = 1_024;
const MAX_BUDGET = 32_000;

/**
 * Budgets that stand for efforts where the ceiling says nothing: Claude Code's own steps are of this size.
 */
const BUDGET_STEPS: readonly [number, Effort][] = [
  [4_096, "low"],
  [16_384, "medium"],
];

/** The effort to name; null leaves it to the host. */
function effortOf({ effort, budgetTokens }: ReasoningSettings, report: TranslationReport): Effort | null {
  if (effort !== null || budgetTokens === null) return effort;
  report.omit("thinking.budget_tokens");
  return BUDGET_STEPS.find(([most]) => budgetTokens <= most)?.[1] ?? "high";
}

/**
 * The same where the model may not be asked, or where only the three middle efforts are known, as outside of
 * OpenAI.
 */
export function effortFor(settings: ReasoningSettings, report: TranslationReport): Effort | "none" | null {
  const { quirks } = report.target;
  if (quirks.noReasoningEffort === true) {
    if (settings.off || settings.effort !== null || settings.budgetTokens !== null)
      report.omit("reasoning.effort");
    return null;
  }
  if (settings.off) return "none";
  const effort = effortOf(settings, report);
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

/**
 * Tokens to think with under a ceiling, which they are a part of; null where it leaves no room. `named` is the
 * ceiling of the client's own, and null where it named none.
 */
export function budgetOf(settings: ReasoningSettings, ceiling: number, named: number | null): number | null {
  const { effort, budgetTokens } = settings;
  const wished = budgetTokens ?? Math.min(MAX_BUDGET, Math.floor(ceiling * SHARES[effort ?? "medium"]));
  const budget = Math.max(wished, MIN_BUDGET);
  const isMeant = budgetTokens === null || ceiling === named;
  return isMeant && budget < ceiling ? budget : budgetUnder(ceiling, budget);
}

/**
 * What becomes of a budget under a ceiling that it was not named for: no more than leaves room for an answer.
 * Null where the ceiling is too low for any, because Anthropic refuses a budget that fills it.
 */
export function budgetUnder(ceiling: number, budget: number): number | null {
  if (ceiling <= MIN_BUDGET) return null;
  return Math.min(budget, Math.max(MIN_BUDGET, Math.floor(ceiling * SHARES.high)));
}

/** Anthropic's efforts have no `minimal`. */
export const anthropicEffort = (effort: Effort): Effort => (effort === EFFORTS[0] ? "low" : effort);

export type Sampling = Pick<Conversation, "temperature" | "topP" | "topK">;

/**
 * How the host has to sample. Reasoning models choose that themselves and answer 400 to such settings:
 * Anthropic's from Opus 4.7 on ("Migrating to Claude Opus 4.7"), OpenAI's from o1 on. What is left out is
 * named, but for values that ask for nothing.
 */
export function samplingFor(settings: Sampling, report: TranslationReport): Sampling {
  if (report.target.quirks.noSampling !== true) return settings;
  if ((settings.temperature ?? 1) !== 1) report.omit("temperature");
  if ((settings.topP ?? 1) !== 1) report.omit("top_p");
  if (settings.topK !== null) report.omit("top_k");
  return NONE;
}

const NONE: Sampling = { temperature: null, topP: null, topK: null };
