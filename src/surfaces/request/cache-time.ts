import { type ByRetention, type CacheRetention, RETENTIONS } from "../../catalog/price.ts";
import { invalid, type Refusal } from "../../units/errors/refusal.ts";
import { containsOne } from "../json/bytes.ts";
import { asObject } from "../json/json.ts";

/**
 * How long hosts are asked to keep what they cache of a prompt, because writes that are kept longer cost more
 * (Anthropic "Prompt caching", `cache_control.ttl`; OpenAI "Prompt caching", `prompt_cache_options.ttl` and
 * `prompt_cache_breakpoint.ttl`). Each retention that the request names, with the field that names it first; a refusal
 * where no price can have it.
 */
export function namedRetentions(body: Uint8Array, json: unknown): ByRetention<string> | Refusal {
  if (!containsOne(body, MARKS)) return NONE;
  const named: NamedFields = {};
  return collect(json, "", named) ?? named;
}

const NONE: ByRetention<string> = {};

/** The second is how it may be written so that it is not found by its letters. */
const MARKS = ['"ttl"', "\\u00"].map((mark) => Buffer.from(mark));

/** The members that say how long: on tools, turns, parts of them, and on the whole. */
const HOLDERS = new Set(["cache_control", "prompt_cache_breakpoint", "prompt_cache_options"]);
/** A customer's own data, in which no host looks for them. */
const DATA = new Set(["input_schema", "parameters", "schema", "arguments", "metadata"]);

type NamedFields = { [Name in CacheRetention]?: string };

/** Bodies are of bounded depth. Null once all is collected. */
function collect(value: unknown, path: string, named: NamedFields): Refusal | null {
  if (typeof value !== "object" || value === null) return null;
  if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) {
      const refusal = collect(item, `${path}[${at}]`, named);
      if (refusal !== null) return refusal;
    }
    return null;
  }
  for (const [name, member] of Object.entries(value)) {
    const own = path === "" ? name : `${path}.${name}`;
    const ttl = HOLDERS.has(name) ? (asObject(member)?.ttl ?? null) : null;
    if (ttl !== null) {
      const retention = RETENTIONS.find((one) => one === ttl);
      if (retention === undefined)
        return invalid(`${own}.ttl`, `must be one of ${RETENTIONS.join(", ")}; others have no price`);
      named[retention] ??= `${own}.ttl`;
    }
    // What a tool is called with is an object; a list of items is the prompt.
    if (DATA.has(name) || (name === "input" && !Array.isArray(member))) continue;
    const refusal = collect(member, own, named);
    if (refusal !== null) return refusal;
  }
  return null;
}
