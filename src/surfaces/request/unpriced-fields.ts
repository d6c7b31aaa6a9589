import type { SurfaceName } from "../../catalog/catalog.ts";
import { asObject, type Json } from "../json/json.ts";
import type { GenerationRequest } from "../surface.ts";
import type { BodyChanges } from "./body-changes.ts";

/**
 * Members by which an answer could cost more than what is held for it. A service at another price is refused,
 * because the client would notice that it is missing; a ceiling or a number of answers that the request's
 * language does not know is left out, because some hosts obey it all the same.
 */

/** Left out for hosts of the request's own language; where it is translated, it never arrives. */
export function leaveOutUnpriced(
  { surface, json }: Pick<GenerationRequest, "surface" | "json">,
  changes: BodyChanges,
): void {
  for (const name of UNPRICED[surface]) if (json[name] !== undefined) changes.drop(name, json[name]);
  const more = asObject(json.extra_body);
  // Gemini's own settings have their place there; others are merged with the request by proxies.
  if (more !== null && Object.keys(more).some((name) => name !== "google")) changes.drop("extra_body", more);
}

/** The member that asks for a service which hosts charge above their prices for; null where there is none. */
export function costlierService(json: Json): string | null {
  for (const { name, usual } of SERVICES) {
    const value = json[name];
    if (value === undefined || value === null) continue;
    if (typeof value !== "string" || !usual.includes(value.toLowerCase())) return name;
  }
  return null;
}

/**
 * What is known to cost no more than the price: holds and charges know one price of a model (OpenAI “Priority
 * processing”, Anthropic “Fast mode” and “Data residency”, Groq “Service tiers”). A name that is not here may
 * be a expensive one, or become one.
 */
const SERVICES: readonly { readonly name: string; readonly usual: readonly string[] }[] = [
  { name: "service_tier", usual: ["auto", "default", "standard", "standard_only", "flex", "on_demand"] },
  { name: "speed", usual: ["standard", "normal"] },
  { name: "inference_geo", usual: ["global"] },
  // It bounds how long a cache may be kept, and costs nothing; another one may.
  { name: "prompt_cache_retention", usual: ["in_memory", "in-memory", "24h"] },
];

/** Ceilings by the names of other servers: text-generation-inference, llama.cpp, Ollama, Vertex. */
const CEILINGS = [
  "max_new_tokens",
  "max_tokens_to_sample",
  "max_length",
  "n_predict",
  "num_predict",
  "generation_config",
  "generationConfig",
];
/** Answers that are written and not shown, or shown next to the one that was asked for. */
const ANSWERS = ["best_of", "num_return_sequences", "candidate_count", "use_beam_search", "num_beams"];
/** What was predicted wrongly is billed as written, beyond the ceiling (OpenAI, “Predicted outputs”). */
const PREDICTION = "prediction";

const ALWAYS = [...CEILINGS, ...ANSWERS, PREDICTION];

const UNPRICED: Readonly<Record<SurfaceName, readonly string[]>> = {
  "chat.completions": [...ALWAYS, "max_output_tokens"],
  messages: [...ALWAYS, "max_completion_tokens", "max_output_tokens", "n"],
  responses: [...ALWAYS, "max_tokens", "max_completion_tokens", "n"],
};

/** All that is looked at here, next to the ceilings of the languages themselves. */
export const UNPRICED_NAMES: readonly string[] = [
  ...ALWAYS,
  ...SERVICES.map(({ name }) => name),
  "extra_body",
];
