import type { Json } from "../json/json.ts";
import { isEffort, type ReasoningSettings } from "./conversation.ts";
import type { ObjectReader } from "./object-reader.ts";

/**
 * Whether and how much to think, in words that are not the language's own: clients made for one host send
 * them to any. Qwen's `enable_thinking` with `thinking_budget`, `thinking` of DeepSeek, GLM and Kimi (Anthropic's
 * form), `chat_template_kwargs` of vLLM and SGLang, Cerebras' `disable_reasoning`, and OpenAI's
 * `reasoning_effort` where it stands in another language than chat.
 */
export function readThinkingWords(
  body: ObjectReader,
  /** Null where the member is the language's own. */
  thinking = body.objectAmong("thinking"),
): ReasoningSettings | null {
  const switched = body.take("thinking");
  const type = thinking?.type ?? null;
  const budget = thinking?.take("budget_tokens");
  const effort = body.take("reasoning_effort");
  const template = readTemplate(body);
  const enabled = body.boolean("enable_thinking");
  const disabled = body.boolean("disable_reasoning") === true ? false : null;
  const wished = typeof switched === "boolean" ? switched : (template ?? enabled ?? disabled);
  if (wished === false || type === "disabled" || effort === "none") return OFF;
  const budgetTokens = body.number("thinking_budget") ?? (typeof budget === "number" ? budget : null);
  const isNamed = isEffort(effort);
  if (wished === null && budgetTokens === null && !isNamed && !THINKING.has(type)) return null;
  return { off: false, effort: isNamed ? effort : null, budgetTokens, summary: null };
}

const OFF: ReasoningSettings = { off: true, effort: null, budgetTokens: null, summary: null };
const THINKING = new Set<unknown>(["enabled", "adaptive", "auto"]);

function readTemplate(body: ObjectReader): boolean | null {
  const template = body.object("chat_template_kwargs");
  const [enabled, thinking] = [template?.boolean("enable_thinking"), template?.boolean("thinking")];
  return enabled ?? thinking ?? null;
}

/** Chat's own, which hosts of chat take from clients of any language; Mistral calls the first `random_seed`. */
export function chatWords(body: ObjectReader): Json {
  const {
    seed,
    random_seed: random,
    ...penalties
  } = body.pick(["seed", "random_seed", "presence_penalty", "frequency_penalty"]);
  const words = { ...penalties, seed: seed ?? random };
  return Object.fromEntries(Object.entries(words).filter(([, value]) => typeof value === "number"));
}
