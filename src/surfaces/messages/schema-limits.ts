import { asObject, type Json } from "../json/json.ts";

/**
 * A JSON Schema as Anthropic's models can be held to (docs.anthropic.com, "Structured outputs", "JSON Schema
 * limitations"). OpenAI's clients write bounds of numbers, strings and lists, which Anthropic refuses
 * together with the whole request, and leave `additionalProperties` out, which it insists on. What it cannot
 * enforce is written into the description for the model, as Anthropic's own clients do.
 */
export function withinLimits(schema: Json): LimitedSchema {
  const limiter = new Limiter();
  return { schema: limiter.limit(schema), isDescribed: limiter.isDescribed };
}

export interface LimitedSchema {
  readonly schema: Json;
  /** Bounds became words. */
  readonly isDescribed: boolean;
}

class Limiter {
  isDescribed = false;

  limit(schema: Json): Json {
    const limited: Record<string, unknown> = {};
    const bounds: string[] = [];
    for (const [keyword, value] of Object.entries(schema)) {
      if (isRefused(keyword, value)) bounds.push(`${keyword}: ${JSON.stringify(value)}`);
      else if (keyword === "oneOf" && schema.anyOf === undefined) limited.anyOf = this.within(keyword, value);
      else if (!SILENT.has(keyword)) limited[keyword] = this.within(keyword, value);
    }
    if (isObjects(schema) && schema.additionalProperties === undefined) limited.additionalProperties = false;
    if (bounds.length === 0) return limited;
    this.isDescribed = true;
    const words = typeof schema.description === "string" ? `${schema.description} ` : "";
    return { ...limited, description: `${words}(${bounds.join(", ")})` };
  }

  /** A schema stands under a keyword, in a list, or by a name that is no keyword. */
  private within(keyword: string, value: unknown): unknown {
    if (MAPS.has(keyword)) {
      const schemas = asObject(value);
      if (schemas === null) return value;
      return Object.fromEntries(
        Object.entries(schemas).map(([name, schema]) => [name, this.ifSchema(schema)]),
      );
    }
    if (!NESTING.has(keyword)) return value;
    return Array.isArray(value) ? value.map((schema) => this.ifSchema(schema)) : this.ifSchema(value);
  }

  private ifSchema(value: unknown): unknown {
    const schema = asObject(value);
    return schema === null ? value : this.limit(schema);
  }
}

function isRefused(keyword: string, value: unknown): boolean {
  if (keyword === "minItems") return value !== 0 && value !== 1;
  if (keyword === "format") return typeof value === "string" && !FORMATS.has(value);
  return BOUNDS.has(keyword);
}

const isObjects = ({ type, properties }: Json): boolean =>
  type === "object" || (Array.isArray(type) && type.includes("object")) || properties !== undefined;

const BOUNDS = new Set([
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "maxItems",
  "uniqueItems",
  "minProperties",
  "maxProperties",
]);
const FORMATS = new Set([
  "date-time",
  "time",
  "date",
  "duration",
  "email",
  "hostname",
  "uri",
  "ipv4",
  "ipv6",
  "uuid",
]);
/** They say nothing about the answer. */
const SILENT = new Set(["$schema", "discriminator"]);
const MAPS = new Set(["properties", "$defs", "definitions"]);
const NESTING = new Set(["items", "anyOf", "oneOf", "allOf"]);
