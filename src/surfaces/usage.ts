import { type ByRetention, type CacheRetention, writesWithin } from "../catalog/price.ts";
import { promptOf } from "../catalog/tokens.ts";
import { asObject } from "./json/json.ts";
import type { WriteUsage } from "./passing/billed.ts";
import type { Usage, UsagePart } from "./surface.ts";

/**
 * What hosts say that an answer used. A report is evidence, not truth: each member is read for itself, and one
 * that cannot be true counts as missing, which is 0. Whether a report can be true of this request, the
 * bill decides (generation/billed-tokens). A stream may report several times: usage only grows, so a later report
 * takes nothing back that an earlier one reported of the answer.
 */

/** More tokens than any model can use in one request; a larger number is not believed. */
const MAX_TOKENS = 1_000_000_000;

/**
 * OpenAI's two spellings (chat: `prompt_tokens`, responses: `input_tokens`), whose prompt includes what was
 * read from the cache. `before` is what the stream reported earlier. Null where neither tells anything.
 */
export function readOpenAiUsage(value: unknown, before: Usage | null = null): Usage | null {
  const usage = asObject(value);
  if (usage === null) return before;
  const prompt = tokens(usage.prompt_tokens ?? usage.input_tokens);
  const answer = tokens(usage.completion_tokens ?? usage.output_tokens);
  const total = tokens(usage.total_tokens);
  if (prompt === null && answer === null) return before;
  const promptDetails = asObject(usage.prompt_tokens_details ?? usage.input_tokens_details);
  const outputDetails = asObject(usage.completion_tokens_details ?? usage.output_tokens_details);
  // DeepSeek and Moonshot report their caches next to the details.
  const cacheRead =
    tokens(promptDetails?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens) ?? 0;
  const cacheWrite = tokens(promptDetails?.cache_write_tokens ?? promptDetails?.cache_creation_tokens) ?? 0;
  const thoughts = tokens(outputDetails?.reasoning_tokens) ?? 0;
  const parts = sort({ prompt, answer, total, cached: cacheRead + cacheWrite, thoughts });
  const cache = parts.hasCache ? { cacheRead, cacheWrite } : { cacheRead: 0, cacheWrite: 0 };
  const audioInput = tokens(promptDetails?.audio_tokens);
  const spoken = tokens(outputDetails?.audio_tokens);
  const used: { -readonly [Field in keyof Usage]: Usage[Field] } = {
    input: parts.input,
    ...cache,
    output: parts.output,
    reasoning: parts.reasoning,
  };
  const kept = retentionsOf(promptDetails?.cache_write_tokens_details, OPENAI);
  if (kept !== null) used.cacheWrites = writesWithin(kept, cache.cacheWrite);
  // How much of the cache is sound, no host tells.
  if (audioInput !== null) used.audioInput = Math.min(audioInput, used.input);
  if (spoken !== null) used.audioOutput = Math.min(spoken, used.output);
  return later(before, withCost(used, usage.cost));
}

interface ReportedUsage {
  readonly prompt: number | null;
  readonly answer: number | null;
  readonly total: number | null;
  readonly cached: number;
  readonly thoughts: number;
}

/**
 * What is part of what. OpenAI counts the cache as a part of the prompt, and thoughts as a part of the answer.
 * By their total, Grok's and Gemini's thoughts are next to the answer, and billed like the rest of it (Google
 * Cloud, "Reasoning for Grok models"; Gemini's `thoughtsTokenCount` next to `candidatesTokenCount`); Grok's
 * cache on Azure is next to the prompt.
 */
function sort({ prompt, answer, total, cached, thoughts }: ReportedUsage) {
  const isInTotal = prompt !== null && total !== null;
  // An answer of thoughts alone may have no `completion_tokens` at all.
  const beyond = isInTotal ? Math.max(0, total - prompt - (answer ?? 0)) : 0;
  const isAlike = beyond === cached || beyond === cached + thoughts;
  const cacheIsApart =
    cached > (prompt ?? 0)
      ? !isInTotal || beyond >= cached
      : cached > 0 && isAlike && beyond !== thoughts && isInTotal;
  const thoughtsApart = beyond - (cacheIsApart && isInTotal ? cached : 0);
  const output = (answer ?? 0) + (answer === null && !isInTotal ? 0 : thoughtsApart);
  const hasCache = cacheIsApart || cached <= (prompt ?? 0);
  return {
    input: (prompt ?? 0) - (hasCache && !cacheIsApart ? cached : 0),
    hasCache,
    output,
    reasoning: Math.min(Math.max(thoughts, thoughtsApart), output),
  };
}

/**
 * Anthropic's, whose `input_tokens` exclude the cache. `before` is what an earlier event of the stream said.
 */
export function readAnthropicUsage(value: unknown, before: Usage | null): Usage | null {
  const usage = asObject(value);
  if (usage === null) return before;
  const input = tokens(usage.input_tokens);
  const output = tokens(usage.output_tokens);
  const cacheRead = tokens(usage.cache_read_input_tokens);
  const cacheWrite = tokens(usage.cache_creation_input_tokens);
  const written = output ?? 0;
  const thoughts = tokens(asObject(usage.output_tokens_details)?.thinking_tokens) ?? 0;
  if (input === null && output === null && before === null) return null;
  const kept = retentionsOf(usage.cache_creation, ANTHROPIC) ?? before?.cacheWrites;
  const writes = cacheWrite ?? before?.cacheWrite ?? 0;
  const hasPrompt = Math.max(input ?? 0, cacheRead ?? 0, cacheWrite ?? 0) > 0;
  const reported: Usage = {
    input: hasPrompt ? (input ?? before?.input ?? 0) : 0,
    cacheRead: hasPrompt ? (cacheRead ?? before?.cacheRead ?? 0) : 0,
    cacheWrite: hasPrompt ? writes : 0,
    ...(kept === undefined ? {} : { cacheWrites: writesWithin(kept, writes) }),
    output: written,
    reasoning: Math.min(thoughts, written),
  };
  const { iterations } = usage;
  const parts = Array.isArray(iterations) ? partsOf(iterations) : [];
  const all = withCost(withCompactions(reported, iterations), usage.cost);
  return later(before, parts.length === 0 ? all : { ...all, parts });
}

/** A message for each time that a model wrote: a `fallback_message` where another than the one requested ended it. */
function partsOf(iterations: readonly unknown[]): readonly UsagePart[] {
  if (iterations.length > MAX_ITERATIONS) return [];
  const parts: UsagePart[] = [];
  for (const value of iterations) {
    const iteration = asObject(value);
    if (iteration === null || !WRITING.has(iteration.type)) continue;
    const usage = readAnthropicUsage({ ...iteration, iterations: null, cost: null }, null);
    // A summary names no model: it is made between two turns of one.
    const named = iteration.type === "compaction" ? parts.at(-1)?.model : iteration.model;
    const model = typeof named === "string" ? named : null;
    if (usage !== null) parts.push({ model, isFallback: iteration.type === "fallback_message", usage });
  }
  return parts;
}

const WRITING: ReadonlySet<unknown> = new Set(["message", "fallback_message", "compaction"]);
/** More than any host runs its own tools in one answer. */
const MAX_ITERATIONS = 1_000;

/**
 * Usage as reported at the beginning of a stream. Nothing has been written by then, so whatever it says about
 * the answer is ignored.
 */
export function readAnthropicBeginning(value: unknown): Usage | null {
  const usage = readAnthropicUsage(value, null);
  return usage === null ? null : { ...usage, output: 0, reasoning: 0 };
}

/**
 * Summaries of a long conversation, which Anthropic bills next to the answer and leaves out of its sums
 * ("Compaction").
 */
function withCompactions(used: Usage, iterations: unknown): Usage {
  if (!Array.isArray(iterations)) return used;
  let sum = used;
  for (const iteration of iterations) {
    if (asObject(iteration)?.type !== "compaction") continue;
    const one = readAnthropicUsage({ ...iteration, iterations: null, cost: null }, null);
    if (one !== null) sum = plus(sum, one);
  }
  const { input, cacheRead, cacheWrite, output } = sum;
  return Math.max(input, cacheRead, cacheWrite, output) <= MAX_TOKENS ? sum : used;
}

export const writeChatUsage: WriteUsage = ({ input, cacheRead, cacheWrite, output, reasoning }) => {
  const prompt = input + cacheRead + cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: {
      cached_tokens: cacheRead,
      cache_write_tokens: cacheWrite > 0 ? cacheWrite : undefined,
    },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
};

export const writeResponsesUsage: WriteUsage = ({ input, cacheRead, cacheWrite, output, reasoning }) => {
  const prompt = input + cacheRead + cacheWrite;
  return {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: prompt + output,
  };
};

/** Usage at the end of a stream. */
export const writeMessagesUsage: WriteUsage = ({ input, cacheRead, cacheWrite, output, reasoning }) => ({
  input_tokens: input,
  cache_creation_input_tokens: cacheWrite,
  cache_read_input_tokens: cacheRead,
  output_tokens: output,
  output_tokens_details: reasoning > 0 ? { thinking_tokens: reasoning } : null,
  server_tool_use: null,
});

/** Usage of a whole message, as a stream begins with it too. */
export const writeMessageUsage: WriteUsage = (tokens) => ({
  ...writeMessagesUsage(tokens),
  cache_creation: null,
  service_tier: null,
  inference_geo: null,
  speed: null,
});

/** Tokens of both. How long they are kept is known only if both report it. */
export function plus(a: Usage, b: Usage): Usage {
  const { cacheWrites: kept } = a;
  const { cacheWrites: more } = b;
  return {
    input: a.input + b.input,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
    ...(kept === undefined || more === undefined ? {} : { cacheWrites: sumOf(kept, more) }),
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
    // Each is priced by its own length: two short ones are not a long one.
    longestPrompt: Math.max(a.longestPrompt ?? promptOf(a), promptOf(b)),
  };
}

function sumOf(a: ByRetention<number>, b: ByRetention<number>): ByRetention<number> {
  const names = new Set([...Object.keys(a), ...Object.keys(b)] as CacheRetention[]);
  return Object.fromEntries([...names].map((name) => [name, (a[name] ?? 0) + (b[name] ?? 0)]));
}

/** The members by which hosts report how long they keep what they wrote to their caches. */
const ANTHROPIC = { "5m": "ephemeral_5m_input_tokens", "1h": "ephemeral_1h_input_tokens" };
const OPENAI = { "30m": "ttl_30m_tokens", "12h": "ttl_12h_tokens" };

/** Null where the host reports nothing of it. */
function retentionsOf(value: unknown, members: ByRetention<string>): ByRetention<number> | null {
  const details = asObject(value);
  if (details === null) return null;
  const counts = Object.entries(members).flatMap(([retention, member]) => {
    const count = tokens(details[member]);
    return count === null ? [] : [[retention, count] as const];
  });
  return counts.length === 0 ? null : Object.fromEntries(counts);
}

/** A later report of the same stream: of the prompt it stands alone, unless it says nothing of it. */
function later(before: Usage | null, reported: Usage): Usage {
  if (before === null) return reported;
  const { input, audioInput, cacheRead, cacheWrite, cacheWrites, longestPrompt } =
    promptOf(reported) > 0 ? reported : before;
  const { output, audioOutput, reasoning } = reported.output >= before.output ? reported : before;
  const costUsd = reported.costUsd ?? before.costUsd;
  const parts = reported.parts ?? before.parts;
  return {
    input,
    cacheRead,
    cacheWrite,
    ...(audioInput === undefined ? {} : { audioInput }),
    ...(cacheWrites === undefined ? {} : { cacheWrites }),
    ...(longestPrompt === undefined ? {} : { longestPrompt }),
    output,
    ...(audioOutput === undefined ? {} : { audioOutput }),
    reasoning: Math.min(Math.max(reasoning, before.reasoning), output),
    ...(costUsd === undefined ? {} : { costUsd }),
    ...(parts === undefined ? {} : { parts }),
  };
}

/** OpenRouter and its like add what they charge, in every language. */
const withCost = (usage: Usage, cost: unknown): Usage =>
  typeof cost === "number" && Number.isFinite(cost) ? { ...usage, costUsd: cost } : usage;

/** Null for what is no count. */
function tokens(value: unknown): number | null {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS
    ? value
    : null;
}

/**
 * Whether a host declined: it ended the answer for policy reasons before any of it, with a good status (Anthropic's
 * `refusal`, OpenAI's `content_filter`). Thoughts are part of an answer, also those that the host does not show: it
 * bills them, so the client pays for them. By its usage the host shows that there were some.
 */
export const isDeclined = (isFiltered: boolean, isWritten: boolean, usage: Usage | null): boolean =>
  isFiltered && !isWritten && (usage === null || isNothing(usage));

/** No model wrote anything of it, not even unseen; where several ran, none of them. */
export const isNothing = ({ output, parts = [] }: Usage): boolean =>
  output <= MAX_DECLINING_TOKENS * Math.max(1, parts.length) && parts.every(({ usage }) => isNothing(usage));

/** What hosts count for an answer of nothing: none, or the token at which it ended (Amazon Bedrock, "Fallback credit"). */
const MAX_DECLINING_TOKENS = 1;
