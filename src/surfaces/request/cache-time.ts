import { containsOne } from "../json/bytes.ts";
import { asObject } from "../json/json.ts";

/**
 * Whether a prompt asks for a cache that lasts an hour, whose writes cost more (Anthropic "Prompt caching",
 * `ttl`).
 */
export const isCachedFor1h = (body: Uint8Array, json: unknown): boolean =>
  containsOne(body, MARKS) && asksFor1h(json);

/** The second is how it may be written so that it is not found by its letters. */
const MARKS = ['"1h"', "\\u00"].map((mark) => Buffer.from(mark));

/**
 * Wherever it stands: hosts take it on tools, turns, parts of them, and on the whole. Bodies are of bounded
 * depth.
 */
function asksFor1h(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some(asksFor1h);
  if (asObject((value as { cache_control?: unknown }).cache_control)?.ttl === "1h") return true;
  return Object.values(value).some(asksFor1h);
}
