/** An object as it was parsed, of which nothing is known yet. */
export type Json = Readonly<Record<string, unknown>>;

/** One that is still being put together. */
export type MutableJson = Record<string, unknown>;

/** What a text spells; undefined for what is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The object that a text spells; null for what is no JSON, or something else. */
export const parseObject = (text: string): Record<string, unknown> | null => asObject(parseJson(text));

export const asObject = (value: unknown): Record<string, unknown> | null =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;

/** A value where a text belongs. An object is none: `String` fails for one that has a member `toString`. */
export const asText = (value: unknown): string =>
  typeof value === "object" && value !== null ? "" : String(value);

/** Some clients and hosts send members that they leave empty. */
export const isPresent = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0);
