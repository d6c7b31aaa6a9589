import { asObject } from "../json/json.ts";
import type { BodyChanges } from "../request/body-changes.ts";
import { lowerBudget } from "../request/lowered-budget.ts";
import type { GenerationRequest, HostTarget } from "../surface.ts";

/**
 * Words of OpenRouter's, which clients made for it send to any model. `usage` is from when usage was not
 * always reported, and refused by other hosts; OpenAI's refuse its `reasoning` and `include_reasoning` too,
 * and name efforts instead.
 */
export function putOpenRouterWords(
  request: GenerationRequest,
  { quirks, maxOutputTokens }: HostTarget,
  changes: BodyChanges,
): void {
  const { json } = request;
  if (asObject(json.usage) !== null) changes.drop("usage", json.usage);
  const isStrict = quirks.maxCompletionTokens === true || quirks.coreFieldsOnly === true;
  if (isStrict && quirks.cacheControl !== true && asObject(json.cache_control) !== null)
    changes.drop("cache_control", json.cache_control);
  if (quirks.maxCompletionTokens !== true) {
    if (maxOutputTokens !== null) lowerBudget("reasoning", "max_tokens", request, maxOutputTokens, changes);
    return;
  }
  if (json.include_reasoning !== undefined) changes.drop("include_reasoning", json.include_reasoning);
  const settings = asObject(json.reasoning);
  if (settings === null) return;
  const effort = settings.enabled === false ? "none" : settings.effort;
  const isTaken = (json.reasoning_effort ?? null) !== null || quirks.noReasoningEffort === true;
  if (typeof effort !== "string" || isTaken) return changes.drop("reasoning", settings);
  changes.set("reasoning", null);
  changes.set("reasoning_effort", JSON.stringify(effort));
}

/** In a stream; OpenRouter's provider for Vercel's AI SDK asks for it in OpenRouter's words alone. */
export const wantsUsage = (json: Readonly<Record<string, unknown>>): boolean =>
  asObject(json.stream_options)?.include_usage === true || asObject(json.usage)?.include === true;
