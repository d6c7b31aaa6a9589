import { asObject } from "./json.ts";

declare global {
  interface JSON {
    /**
     * Of ECMAScript, not yet of TypeScript's library. Throws for what is no number, text, truth value or
     * null.
     */
    rawJSON(text: string): unknown;
  }
}

/**
 * The object that a text of JSON spells, with its long whole numbers as they are spelt; null for what is no
 * JSON, or something else. `JSON.parse` makes 175928847299117060 of 175928847299117063, and tools are called
 * with ids of that length. Such a number becomes a `JSON.rawJSON`, which `JSON.stringify` writes as it came.
 */
export function parseExactObject(text: string): Record<string, unknown> | null {
  try {
    const value = asObject(JSON.parse(text));
    return value === null ? null : (exactly(text, value) as Record<string, unknown>);
  } catch {
    return null;
  }
}

/** The same for JSON that was read already, as `value`, which is left as it is. */
export const exactly = (json: string, value: unknown): unknown =>
  SIXTEEN_DIGITS.test(json) ? exact(value, JSON.parse(withQuotedIntegers(json))) : value;

/** The least that a double may change. */
const SIXTEEN_DIGITS = /\d{16}/;
/** Whole, so no part of a fraction or an exponent. */
const LONG_INTEGER = /(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;

/** The same JSON with long whole numbers as texts. */
function withQuotedIntegers(json: string): string {
  const parts: string[] = [];
  let taken = 0;
  let at = 0;
  while (at < json.length) {
    const quote = json.indexOf('"', at);
    const gapEnd = quote === -1 ? json.length : quote;
    if (gapEnd - at >= 16) {
      parts.push(json.slice(taken, at), json.slice(at, gapEnd).replace(LONG_INTEGER, '"$&"'));
      taken = gapEnd;
    }
    at = quote === -1 ? json.length : endOfText(json, quote);
  }
  parts.push(json.slice(taken));
  return parts.join("");
}

function endOfText(json: string, quote: number): number {
  let at = quote + 1;
  while (json[at] !== '"') at += json[at] === "\\" ? 2 : 1;
  return at + 1;
}

/** `value` with the numbers that `quoted` has as texts, where a double is not what they say. */
function exact(value: unknown, quoted: unknown): unknown {
  if (typeof value === "number")
    return typeof quoted === "string" && !Number.isSafeInteger(value) ? JSON.rawJSON(quoted) : value;
  if (typeof value !== "object" || value === null) return value;
  const spelt = quoted as Readonly<Record<string, unknown>>;
  if (Array.isArray(value)) return value.map((item, at) => exact(item, spelt[at]));
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, exact(member, spelt[name])]),
  );
}
