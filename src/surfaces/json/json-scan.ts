/**
 * Steps over the values of JSON in its bytes, for the cursor. That the bytes are JSON at all is
 * `JSON.parse`'s to say.
 */

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
export const COLON = 0x3a;
export const COMMA = 0x2c;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;
export const TOO_DEEP = -1;
/** Python's hosts write `NaN` and `Infinity`, which are no JSON. */
export const NOT_JSON = -2;

export function skipSpace(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  while (at < to) {
    const byte = bytes[at]!;
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
    at += 1;
  }
  return at;
}

/** From the opening quote to just behind the closing one. */
export function skipString(bytes: Uint8Array, from: number, to: number): number {
  for (let at = from + 1; at < to; at++) {
    const byte = bytes[at];
    if (byte === BACKSLASH) at += 1;
    else if (byte === QUOTE) return at + 1;
    else if (at - from > SHORT_STRING) return skipLongString(bytes, at, to);
  }
  return to;
}

/** Beyond this many bytes a native search for the quote is faster than looking at each. */
const SHORT_STRING = 32;

function skipLongString(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  for (;;) {
    const quote = bytes.indexOf(QUOTE, at);
    if (quote === -1 || quote >= to) return to;
    let slashes = 0;
    while (bytes[quote - 1 - slashes] === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}

/** `TOO_DEEP` where values are nested in so many others. */
export function skipValue(bytes: Uint8Array, from: number, to: number, mostDepth: number): number {
  const first = bytes[from];
  if (first === QUOTE) return skipString(bytes, from, to);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return skipScalar(bytes, from, to);
  let depth = 0;
  for (let at = from; at < to; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) at = skipString(bytes, at, to) - 1;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth += 1;
      if (depth >= mostDepth) return TOO_DEEP;
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (byte === LETTER_N || byte === LETTER_I) return NOT_JSON;
  }
  return to;
}

/** Whether it has more values than so many, members and elements both, wherever they stand. */
export function hasMoreValues(bytes: Uint8Array, most: number): boolean {
  let count = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) at = skipString(bytes, at, bytes.length) - 1;
    else if (byte === COMMA || byte === OPEN_BRACE || byte === OPEN_BRACKET) count += 1;
    if (count > most) return true;
  }
  return false;
}

function skipScalar(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  if (bytes[at] === LETTER_N || bytes[at] === LETTER_I) return NOT_JSON;
  while (at < to) {
    const byte = bytes[at]!;
    if (byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || byte <= 0x20) break;
    at += 1;
  }
  return at;
}

const LETTER_N = 0x4e;
const LETTER_I = 0x49;

export function isSpelt(bytes: Uint8Array, name: string, from: number, to: number): boolean {
  if (to - from !== name.length) return false;
  for (let index = 0; index < name.length; index++) {
    if (bytes[from + index] !== name.charCodeAt(index)) return false;
  }
  return true;
}
