import { asObject } from "./json.ts";

declare global {
  interface JSON {
    /**
     * Part of ECMAScript, not yet of TypeScript's library. Throws for what is no number, text, truth value or
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
export function exactly(json: string, value: unknown): unknown {
  if (!SIXTEEN_DIGITS.test(json)) return value;
  const quoted = withQuotedIntegers(json);
  // Not with a function that `JSON.parse` calls: for the five million numbers of a large body that takes seconds.
  if (quoted === json) return value;
  const whole = { value: JSON.parse(quoted) };
  unquote(whole, { value });
  return whole.value;
}

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

/** Behind the quote that ends what begins with this one. */
function endOfText(json: string, quote: number): number {
  let at = quote;
  do at = json.indexOf('"', at + 1);
  while (isEscaped(json, at));
  return at + 1;
}

function isEscaped(json: string, quote: number): boolean {
  let at = quote;
  while (json[at - 1] === "\\") at -= 1;
  return (quote - at) % 2 === 1;
}

/** Has `quoted` be `value`, but for the numbers that a double cannot say. */
function unquote(quoted: Members, value: Members): void {
  const one = (name: number | string) => {
    const [text, member] = [quoted[name], value[name]];
    if (typeof text === "object" && text !== null) unquote(text as Members, member as Members);
    else if (typeof member === "number" && typeof text === "string")
      quoted[name] = Number.isSafeInteger(member) ? member : JSON.rawJSON(text);
  };
  if (Array.isArray(quoted)) for (let at = 0; at < quoted.length; at++) one(at);
  else for (const name of Object.keys(quoted)) one(name);
}

type Members = Record<number | string, unknown>;
