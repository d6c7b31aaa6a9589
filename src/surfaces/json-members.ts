import { copyInto } from "./bytes.ts";

/**
 * Where the members of a JSON object stand in its bytes. The gateway changes two or three members of a request and one of
 * each event; everything else must reach the other side as it came, so it is copied by these spans and never printed anew.
 * It only finds members: that the bytes are JSON at all is `JSON.parse`'s to say.
 */
export interface Member {
  /** From the opening quote of the name to the end of the value. */
  readonly start: number;
  readonly valueStart: number;
  readonly end: number;
}

/** Deeper nesting than any client sends; a recursive parser elsewhere might not survive more. */
export const MAX_DEPTH = 128;

/** The member of that name, of an object that is known to be well-formed; stops looking as soon as it is found. */
export function findMember(bytes: Uint8Array, name: string, from: number, to: number): Member | null {
  let at = skipSpace(bytes, from, to);
  if (bytes[at] !== OPEN_BRACE) return null;
  at = skipSpace(bytes, at + 1, to);
  while (at < to && bytes[at] === QUOTE) {
    const start = at;
    const nameEnd = skipString(bytes, at, to);
    const valueStart = skipSpace(bytes, skipSpace(bytes, nameEnd, to) + 1, to);
    const end = skipValue(bytes, valueStart, to);
    if (end === TOO_DEEP) return null;
    if (isSpelt(bytes, name, start + 1, nameEnd - 1)) return { start, valueStart, end };
    at = skipSpace(bytes, end, to);
    if (bytes[at] !== COMMA) return null;
    at = skipSpace(bytes, at + 1, to);
  }
  return null;
}

/** The bytes with the span replaced. */
export function replaceSpan(bytes: Uint8Array, start: number, end: number, by: Uint8Array): Uint8Array {
  const replaced = new Uint8Array(bytes.length + by.length - (end - start));
  copyInto(replaced, 0, bytes, 0, start);
  replaced.set(by, start);
  copyInto(replaced, start + by.length, bytes, end, bytes.length);
  return replaced;
}

/** The member of that name with its comma, of an object that is known to be well-formed. */
export function findWithComma(
  bytes: Uint8Array,
  name: string,
  from: number,
  to: number,
): { readonly start: number; readonly end: number } | null {
  const member = findMember(bytes, name, from, to);
  if (member === null) return null;
  let { start } = member;
  const end = skipSpace(bytes, member.end, to);
  if (bytes[end] === COMMA) return { start, end: end + 1 };
  while (start > from && bytes[start] !== COMMA && bytes[start - 1] !== OPEN_BRACE) start -= 1;
  return { start, end };
}

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
export const COLON = 0x3a;
export const COMMA = 0x2c;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;
export const TOO_DEEP = -1;

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

export function skipValue(bytes: Uint8Array, from: number, to: number): number {
  const first = bytes[from];
  if (first === QUOTE) return skipString(bytes, from, to);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return skipScalar(bytes, from, to);
  let depth = 0;
  for (let at = from; at < to; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) at = skipString(bytes, at, to) - 1;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth += 1;
      if (depth >= MAX_DEPTH) return TOO_DEEP;
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return to;
}

function skipScalar(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  while (at < to) {
    const byte = bytes[at]!;
    if (byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || byte <= 0x20) break;
    at += 1;
  }
  return at;
}

export function isSpelt(bytes: Uint8Array, name: string, from: number, to: number): boolean {
  if (to - from !== name.length) return false;
  for (let index = 0; index < name.length; index++) {
    if (bytes[from + index] !== name.charCodeAt(index)) return false;
  }
  return true;
}
