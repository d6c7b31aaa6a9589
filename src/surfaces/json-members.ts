import { textOf } from "./bytes.ts";

/**
 * Where the members of a JSON object stand in its bytes. The gateway changes two or three members of a request and one of
 * each event; everything else must reach the other side as it came, so it is copied by these spans and never printed anew.
 * It only finds members: that the bytes are JSON at all is `JSON.parse`'s to say.
 */
export interface Member {
  /** As spelt, without quotes; decoded where it was escaped. */
  readonly name: string;
  /** The spelling used an escape: another parser may not recognise the name. */
  readonly escaped: boolean;
  /** From the opening quote of the name to the end of the value. */
  readonly start: number;
  readonly valueStart: number;
  readonly end: number;
}

export type Malformed = "not_an_object" | "too_deep";

/** Deeper nesting than any client sends; a recursive parser elsewhere might not survive more. */
export const MAX_DEPTH = 128;

/** Members of the object that begins at `from`, in order; duplicates included. */
export function readMembers(bytes: Uint8Array, from = 0, to = bytes.length): Member[] | Malformed {
  const members: Member[] = [];
  let at = skipSpace(bytes, from, to);
  if (bytes[at] !== OPEN_BRACE) return "not_an_object";
  at = skipSpace(bytes, at + 1, to);
  while (at < to && bytes[at] === QUOTE) {
    const start = at;
    const nameEnd = skipString(bytes, at, to);
    at = skipSpace(bytes, nameEnd, to);
    if (bytes[at] !== COLON) return "not_an_object";
    const valueStart = skipSpace(bytes, at + 1, to);
    const end = skipValue(bytes, valueStart, to);
    if (end === TOO_DEEP) return "too_deep";
    members.push({ ...nameOf(bytes, start, nameEnd), start, valueStart, end });
    at = skipSpace(bytes, end, to);
    if (bytes[at] !== COMMA) break;
    at = skipSpace(bytes, at + 1, to);
  }
  return members;
}

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
    if (isSpelt(bytes, name, start + 1, nameEnd - 1)) return { name, escaped: false, start, valueStart, end };
    at = skipSpace(bytes, end, to);
    if (bytes[at] !== COMMA) return null;
    at = skipSpace(bytes, at + 1, to);
  }
  return null;
}

/**
 * The object with some members replaced, dropped (null) or added, everything else byte for byte. Spaces between members
 * are not kept.
 */
export function rebuild(
  bytes: Buffer,
  members: readonly Member[],
  changes: ReadonlyMap<string, string | null>,
): Buffer {
  const pieces: Uint8Array[] = [];
  let separator = BRACE;
  for (const member of members) {
    const change = changes.get(member.name);
    if (change === null) continue;
    pieces.push(separator);
    separator = COMMA_BYTE;
    if (change === undefined) pieces.push(bytes.subarray(member.start, member.end));
    else pieces.push(bytes.subarray(member.start, member.valueStart), Buffer.from(change));
  }
  for (const [name, change] of changes) {
    if (change === null || members.some((member) => member.name === name)) continue;
    pieces.push(separator, Buffer.from(`${JSON.stringify(name)}:${change}`));
    separator = COMMA_BYTE;
  }
  pieces.push(separator === BRACE ? EMPTY_OBJECT : CLOSE);
  return Buffer.concat(pieces);
}

/** The bytes with the span replaced. */
export const replaceSpan = (bytes: Uint8Array, start: number, end: number, by: Uint8Array): Buffer =>
  Buffer.concat([bytes.subarray(0, start), by, bytes.subarray(end)]);

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
const BACKSLASH = 0x5c;
export const COLON = 0x3a;
export const COMMA = 0x2c;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;
export const TOO_DEEP = -1;

const BRACE = Buffer.from("{");
const COMMA_BYTE = Buffer.from(",");
const CLOSE = Buffer.from("}");
const EMPTY_OBJECT = Buffer.from("{}");

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

function nameOf(bytes: Uint8Array, start: number, end: number): { name: string; escaped: boolean } {
  const spelt = textOf(bytes, start + 1, end - 1);
  if (!spelt.includes("\\")) return { name: spelt, escaped: false };
  try {
    return { name: JSON.parse(`"${spelt}"`) as string, escaped: true };
  } catch {
    return { name: spelt, escaped: true };
  }
}

export function isSpelt(bytes: Uint8Array, name: string, from: number, to: number): boolean {
  if (to - from !== name.length) return false;
  for (let index = 0; index < name.length; index++) {
    if (bytes[from + index] !== name.charCodeAt(index)) return false;
  }
  return true;
}
