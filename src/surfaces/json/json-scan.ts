import { isHex4 } from "../../tokens/estimate.ts";

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

/** The end of a value that every parser takes; `NOT_JSON` of any other, and of one that is nested deeply. */
export function exactEnd(bytes: Uint8Array, from: number, to: number, depth = 0): number {
  switch (bytes[from]) {
    case QUOTE:
      return exactStringEnd(bytes, from, to);
    case OPEN_BRACE:
    case OPEN_BRACKET:
      return depth < MAX_EXACT_DEPTH ? exactListEnd(bytes, from, to, depth + 1) : NOT_JSON;
    case LETTER_T:
      return isSpelt(bytes, "true", from, from + 4) ? from + 4 : NOT_JSON;
    case LETTER_F:
      return isSpelt(bytes, "false", from, from + 5) ? from + 5 : NOT_JSON;
    case LETTER_SMALL_N:
      return isSpelt(bytes, "null", from, from + 4) ? from + 4 : NOT_JSON;
    default:
      return exactNumberEnd(bytes, from, to);
  }
}

const MAX_EXACT_DEPTH = 8;

/** Of an object or an array. */
function exactListEnd(bytes: Uint8Array, from: number, to: number, depth: number): number {
  const isObject = bytes[from] === OPEN_BRACE;
  const close = isObject ? CLOSE_BRACE : CLOSE_BRACKET;
  let at = skipSpace(bytes, from + 1, to);
  if (bytes[at] === close) return at + 1;
  while (at < to) {
    if (isObject) {
      if (bytes[at] !== QUOTE) return NOT_JSON;
      at = skipSpace(bytes, exactStringEnd(bytes, at, to), to);
      if (bytes[at] !== COLON) return NOT_JSON;
      at = skipSpace(bytes, at + 1, to);
    }
    at = skipSpace(bytes, exactEnd(bytes, at, to, depth), to);
    if (bytes[at] === close) return at + 1;
    if (bytes[at] !== COMMA) return NOT_JSON;
    at = skipSpace(bytes, at + 1, to);
  }
  return NOT_JSON;
}

/** From the opening quote to just behind the closing one. */
function exactStringEnd(bytes: Uint8Array, from: number, to: number): number {
  for (let at = from + 1; at < to; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) return at + 1;
    if (byte < 0x20) return NOT_JSON;
    if (byte !== BACKSLASH) continue;
    at += 1;
    if (bytes[at] === LETTER_U) {
      if (!isHex4(bytes, at + 1, to)) return NOT_JSON;
      at += 4;
    } else if (!ESCAPED.includes(bytes[at]!)) return NOT_JSON;
  }
  return NOT_JSON;
}

function exactNumberEnd(bytes: Uint8Array, from: number, to: number): number {
  let at = bytes[from] === MINUS ? from + 1 : from;
  const whole = digitsEnd(bytes, at, to);
  if (whole === at || (bytes[at] === ZERO && whole > at + 1)) return NOT_JSON;
  at = whole;
  if (bytes[at] === POINT) {
    const fraction = digitsEnd(bytes, at + 1, to);
    if (fraction === at + 1) return NOT_JSON;
    at = fraction;
  }
  if ((bytes[at]! | 0x20) !== LETTER_E || at >= to) return at;
  const sign = bytes[at + 1] === MINUS || bytes[at + 1] === PLUS ? at + 2 : at + 1;
  const power = digitsEnd(bytes, sign, to);
  return power === sign ? NOT_JSON : power;
}

function digitsEnd(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  while (at < to && bytes[at]! >= ZERO && bytes[at]! <= ZERO + 9) at += 1;
  return at;
}

/** `"\/bfnrt`. */
const ESCAPED = [0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74];
const LETTER_T = 0x74;
const LETTER_F = 0x66;
const LETTER_SMALL_N = 0x6e;
const LETTER_U = 0x75;
const LETTER_E = 0x65;
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;

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
