import type { Route } from "../catalog/catalog.ts";
import { asObject } from "../surfaces/json/json.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import { HOUR_MS, MINUTE_MS } from "../units/clock.ts";

/**
 * For how long a host keeps what it may have cached of a request, from its last use on: as the operator says, or five
 * minutes (Anthropic, "Prompt caching"; OpenAI says five to ten, and thirty from GPT-5.6 on). Longer where the request asks for it; and a
 * conversation that thinks does not leave within an hour, because no other host can read its sealed thoughts.
 */
export function cacheLifetimeMs(
  { promptRetentions, json }: Pick<GenerationRequest, "promptRetentions" | "json">,
  { cacheMs, host, quirks = host.quirks }: Route,
): number {
  const usualMs = (quirks.cacheMarks === true ? 30 : 5) * MINUTE_MS;
  const ownMs = cacheMs ?? host.cacheMs ?? usualMs;
  if (json.prompt_cache_retention === "24h") return Math.max(ownMs, 24 * HOUR_MS);
  if (promptRetentions["12h"] !== undefined) return Math.max(ownMs, 12 * HOUR_MS);
  return promptRetentions["1h"] !== undefined || mayThink(json) ? Math.max(ownMs, HOUR_MS) : ownMs;
}

const mayThink = ({ thinking, reasoning, reasoning_effort, include }: GenerationRequest["json"]): boolean =>
  (asObject(thinking)?.type ?? "disabled") !== "disabled" ||
  asObject(reasoning) !== null ||
  typeof reasoning_effort === "string" ||
  (Array.isArray(include) && include.includes("reasoning.encrypted_content"));
