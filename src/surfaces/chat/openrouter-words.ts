import type { BodyChanges } from "../body-changes.ts";
import { asObject } from "../json.ts";
import { lowerBudget } from "../lowered-budget.ts";
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
  if (asObject(json.usage) !== null) leaveOut("usage", changes);
  const isStrict = quirks.maxCompletionTokens === true || quirks.coreFieldsOnly === true;
  if (isStrict && quirks.cacheControl !== true && asObject(json.cache_control) !== null)
    leaveOut("cache_control", changes);
  if (quirks.maxCompletionTokens !== true) {
    if (maxOutputTokens !== null) lowerBudget("reasoning", "max_tokens", request, maxOutputTokens, changes);
    return;
  }
  if (json.include_reasoning !== undefined) leaveOut("include_reasoning", changes);
  const settings = asObject(json.reasoning);
  if (settings === null) return;
  const effort = settings.enabled === false ? "none" : settings.effort;
  const mayNotBeSaid = (json.reasoning_effort ?? null) !== null || quirks.noReasoningEffort === true;
  if (typeof effort !== "string" || mayNotBeSaid) return leaveOut("reasoning", changes);
  changes.set("reasoning", null);
  changes.set("reasoning_effort", JSON.stringify(effort));
}

function leaveOut(name: string, changes: BodyChanges): void {
  changes.set(name, null);
  changes.omitted.push(name);
}

/** In a stream; OpenRouter's provider for Vercel's AI SDK asks for it in OpenRouter's words alone. */
export const wantsUsage = (json: Readonly<Record<string, unknown>>): boolean =>
  asObject(json.stream_options)?.include_usage === true || asObject(json.usage)?.include === true;
