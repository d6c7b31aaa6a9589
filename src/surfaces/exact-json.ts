import { asObject } from "./json.ts";

declare global {
  /** What ECMAScript has of it, and TypeScript's library not yet ("JSON.parse source text access"). */
  interface JSON {
    /** Throws for what is no number, text, truth value or null. */
    rawJSON(text: string): unknown;
    /** `source` is how a number, text, truth value or null is spelt. */
    parse(
      text: string,
      revive: (name: string, value: unknown, context: { readonly source?: string }) => unknown,
    ): unknown;
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
  SIXTEEN_DIGITS.test(json) ? JSON.parse(json, exact) : value;

const exact = (_name: string, value: unknown, { source }: { readonly source?: string }): unknown =>
  typeof value === "number" && !Number.isSafeInteger(value) && LONG_INTEGER.test(source!)
    ? JSON.rawJSON(source!)
    : value;

/** The least that a double may change. */
const SIXTEEN_DIGITS = /\d{16}/;
const LONG_INTEGER = /^-?\d{16,}$/;
