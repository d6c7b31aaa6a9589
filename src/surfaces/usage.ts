import { asObject } from "./json.ts";
import type { Usage } from "./surface.ts";

/** More tokens than any model can use in one request; a larger report is not believed. */
const MAX_TOKENS = 1_000_000_000;

/**
 * OpenAI's two spellings (chat: `prompt_tokens`, responses: `input_tokens`), whose prompt includes what was
 * read from the cache. Null where the report cannot be true.
 */
export function readOpenAiUsage(value: unknown): Usage | null {
  const usage = asObject(value);
  if (usage === null) return null;
  const prompt = tokens(usage.prompt_tokens ?? usage.input_tokens);
  const promptDetails = asObject(usage.prompt_tokens_details ?? usage.input_tokens_details);
  const outputDetails = asObject(usage.completion_tokens_details ?? usage.output_tokens_details);
  // DeepSeek and Moonshot report their caches beside the details.
  const cacheRead = optional(
    promptDetails?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens,
  );
  const cacheWrite = optional(promptDetails?.cache_write_tokens ?? promptDetails?.cache_creation_tokens);
  const heard = tokens(promptDetails?.audio_tokens);
  const spoken = tokens(outputDetails?.audio_tokens);
  if (prompt === null || cacheRead === null || cacheWrite === null) return null;
  if (cacheRead + cacheWrite > prompt) return null;
  const answer = readAnswer(usage, prompt, outputDetails?.reasoning_tokens);
  if (answer === null) return null;
  const { output, reasoning } = answer;
  const input = prompt - cacheRead - cacheWrite;
  const used: { -readonly [Field in keyof Usage]: Usage[Field] } = {
    input,
    cacheRead,
    cacheWrite,
    output,
    reasoning,
  };
  // How much of the cache is sound, no host tells.
  if (heard !== null) used.audioInput = Math.min(heard, input);
  if (spoken !== null) used.audioOutput = Math.min(spoken, output);
  return withCost(used, usage.cost);
}

/**
 * The answer's tokens. Grok's and Gemini's thoughts are no part of `completion_tokens`, and are billed like
 * the rest of the answer: what the total has beyond prompt and answer is theirs (Google Cloud, "Reasoning for
 * Grok models"; Gemini's `thoughtsTokenCount` beside `candidatesTokenCount`).
 */
function readAnswer(
  usage: Readonly<Record<string, unknown>>,
  prompt: number,
  thoughts: unknown,
): Pick<Usage, "output" | "reasoning"> | null {
  const told = usage.completion_tokens ?? usage.output_tokens;
  const total = tokens(usage.total_tokens);
  // An answer of thoughts alone may have no `completion_tokens` at all.
  const answer = told === undefined && total !== null ? 0 : tokens(told);
  const reasoning = optional(thoughts);
  if (answer === null || reasoning === null) return null;
  const beside = Math.max(0, (total ?? 0) - prompt - answer);
  const output = answer + beside;
  return { output, reasoning: Math.min(Math.max(reasoning, beside), output) };
}

/**
 * Anthropic's, whose `input_tokens` exclude the cache. `before` is what an earlier event of the stream said.
 */
export function readAnthropicUsage(value: unknown, before: Usage | null): Usage | null {
  const usage = asObject(value);
  if (usage === null) return before;
  const input = tokens(usage.input_tokens ?? before?.input);
  const cacheRead = optional(usage.cache_read_input_tokens ?? before?.cacheRead);
  const cacheWrite = optional(usage.cache_creation_input_tokens ?? before?.cacheWrite);
  const output = tokens(usage.output_tokens ?? before?.output);
  const reasoning = optional(asObject(usage.output_tokens_details)?.thinking_tokens ?? before?.reasoning);
  if (input === null || output === null || cacheRead === null || cacheWrite === null || reasoning === null)
    return null;
  const kept1h = tokens(asObject(usage.cache_creation)?.ephemeral_1h_input_tokens ?? before?.cacheWrite1h);
  const used: Usage = {
    input,
    cacheRead,
    cacheWrite,
    ...(kept1h === null ? {} : { cacheWrite1h: Math.min(kept1h, cacheWrite) }),
    output,
    reasoning: Math.min(reasoning, output),
  };
  const all = withCompactions(used, usage.iterations);
  return all === null ? null : withCost(all, usage.cost ?? before?.costUsd);
}

/**
 * Usage as reported at the beginning of a stream. Nothing has been written by then, so whatever it says about
 * the answer is ignored.
 */
export function readAnthropicBeginning(value: unknown): Usage | null {
  const usage = readAnthropicUsage(value, null);
  return usage === null ? null : { ...usage, output: 0, reasoning: 0 };
}

/**
 * Summaries of a long conversation, which Anthropic bills beside the answer and leaves out of its sums
 * ("Compaction").
 */
function withCompactions(used: Usage, iterations: unknown): Usage | null {
  if (!Array.isArray(iterations)) return used;
  let sum = used;
  for (const iteration of iterations) {
    if (asObject(iteration)?.type !== "compaction") continue;
    const one = readAnthropicUsage({ ...iteration, iterations: null, cost: null }, null);
    if (one !== null) sum = plus(sum, one);
  }
  const { input, cacheRead, cacheWrite, output } = sum;
  return Math.max(input, cacheRead, cacheWrite, output) <= MAX_TOKENS ? sum : null;
}

/** Tokens of both. How much is kept for an hour is told only if both tell it. */
function plus(a: Usage, b: Usage): Usage {
  const kept1h = a.cacheWrite1h !== undefined && b.cacheWrite1h !== undefined;
  return {
    input: a.input + b.input,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
    ...(kept1h ? { cacheWrite1h: a.cacheWrite1h + b.cacheWrite1h } : {}),
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
  };
}

/** OpenRouter and its like add what they charge, in every language. */
const withCost = (usage: Usage, cost: unknown): Usage =>
  typeof cost === "number" && Number.isFinite(cost) ? { ...usage, costUsd: cost } : usage;

/** A count that must be there. */
function tokens(value: unknown): number | null {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS
    ? value
    : null;
}

/** A count that may be absent or null, and then is 0. */
const optional = (value: unknown): number | null =>
  value === undefined || value === null ? 0 : tokens(value);
