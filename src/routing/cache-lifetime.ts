import type { Route } from "../catalog/catalog.ts";
import { asObject } from "../surfaces/json/json.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";

/**
 * For how long a host keeps what it may have cached of a request, from its last use on: as the operator says, or five
 * minutes (Anthropic, "Prompt caching"; OpenAI says five to ten). Longer where the request asks for it; and a
 * conversation that thinks does not leave within an hour, because no other host can read its sealed thoughts.
 */
export function cacheLifetimeMs(
  { promptCachedFor1h, json }: Pick<GenerationRequest, "promptCachedFor1h" | "json">,
  { cacheMs, host }: Route,
): number {
  const ownMs = cacheMs ?? host.cacheMs ?? 5 * MINUTE_MS;
  if (json.prompt_cache_retention === "24h") return Math.max(ownMs, 24 * HOUR_MS);
  return promptCachedFor1h || mayThink(json) ? Math.max(ownMs, HOUR_MS) : ownMs;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const mayThink = ({ thinking, reasoning, reasoning_effort, include }: GenerationRequest["json"]): boolean =>
  (asObject(thinking)?.type ?? "disabled") !== "disabled" ||
  asObject(reasoning) !== null ||
  typeof reasoning_effort === "string" ||
  (Array.isArray(include) && include.includes("reasoning.encrypted_content"));
