import { asObject, type Json } from "../json.ts";
import { isEffort, type ReasoningSettings } from "./conversation.ts";
import { readBoolean, readNumber, readObject } from "./members.ts";
import type { TranslationReport } from "./translation-report.ts";

/**
 * Whether and how much to think, in words that are not the language's own: clients made for one host send
 * them to any. Qwen's `enable_thinking` with `thinking_budget`, `thinking` of DeepSeek, GLM and Kimi (Anthropic's
 * form), `chat_template_kwargs` of vLLM and SGLang, Cerebras' `disable_reasoning`, and OpenAI's
 * `reasoning_effort` where it stands in another language than chat.
 */
export function readThinkingWords(json: Json, report: TranslationReport): ReasoningSettings | null {
  const { thinking, reasoning_effort: effort } = json;
  const { type, budget_tokens: budget } = asObject(thinking) ?? {};
  const wished =
    typeof thinking === "boolean"
      ? thinking
      : (readTemplate(json, report) ??
        readBoolean(json, "enable_thinking", report) ??
        (readBoolean(json, "disable_reasoning", report) === true ? false : null));
  if (wished === false || type === "disabled" || effort === "none") return OFF;
  const budgetTokens =
    readNumber(json, "thinking_budget", report) ?? (typeof budget === "number" ? budget : null);
  const isNamed = isEffort(effort);
  if (wished === null && budgetTokens === null && !isNamed && !THINKING.has(type)) return null;
  return { off: false, effort: isNamed ? effort : null, budgetTokens, summary: null };
}

export const THINKING_WORDS = [
  "enable_thinking",
  "thinking_budget",
  "thinking",
  "chat_template_kwargs",
  "disable_reasoning",
] as const;

const OFF: ReasoningSettings = { off: true, effort: null, budgetTokens: null, summary: null };
const THINKING = new Set<unknown>(["enabled", "adaptive", "auto"]);

function readTemplate(json: Json, report: TranslationReport): boolean | null {
  const given = readObject(json, "chat_template_kwargs", report) ?? {};
  const path = "chat_template_kwargs";
  return (
    readBoolean(given, "enable_thinking", report, `${path}.enable_thinking`) ??
    readBoolean(given, "thinking", report, `${path}.thinking`)
  );
}

/** Chat's own, which hosts of chat take from clients of any language; Mistral calls the first `random_seed`. */
export function chatWords({ seed, random_seed: random, ...json }: Json): Json {
  const words: Record<string, unknown> = {};
  for (const name of ["presence_penalty", "frequency_penalty"])
    if (typeof json[name] === "number") words[name] = json[name];
  const named = seed ?? random;
  return typeof named === "number" ? { ...words, seed: named } : words;
}
