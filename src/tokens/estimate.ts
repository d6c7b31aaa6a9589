/**
 * A count of tokens that is cheap enough to run next to every delta: about four letters to a token, and
 * somewhat less than one character to a token outside ASCII. Against o200k it is within about 15% on English
 * prose and code, and errs upwards on Chinese and Japanese. It bills only where a host reports no usage, and
 * bounds nothing: see `bound`.
 */
export function estimateTokens(text: string): number {
  let quarters = 0;
  const { length } = text;
  for (let index = 0; index < length; index++) quarters += text.charCodeAt(index) < 0x80 ? 1 : 3;
  return quarters / 4;
}

/**
 * The same count for text that is still in JSON, between its quotes; an escaped character counts as one.
 * `NO_JSON_TEXT` where no parser would take it.
 */
export function estimateJsonText(bytes: Uint8Array, from: number, to: number): number {
  let quarters = 0;
  for (let at = from; at < to; at++) {
    const byte = bytes[at]!;
    if (byte === BACKSLASH) {
      at += 1;
      const escaped = bytes[at]!;
      if (escaped !== LETTER_U) {
        if (!ESCAPED.includes(escaped)) return NO_JSON_TEXT;
        quarters += 1;
      } else {
        if (!isHex4(bytes, at + 1, to)) return NO_JSON_TEXT;
        quarters += isAscii(bytes, at + 1) ? 1 : 3;
        at += 4;
      }
    } else if (byte < 0x80) {
      if (byte < SPACE) return NO_JSON_TEXT;
      quarters += 1;
    }
    // One UTF-16 unit for a lead byte, two for one of four bytes.
    else if (byte >= 0xc0) quarters += byte >= 0xf0 ? 6 : 3;
  }
  return quarters / 4;
}

/** The same for the bytes of a JSON prompt, whose punctuation tokenizes well. */
export const estimatePrompt = (bytes: number): number => Math.ceil(bytes / 4);

/** Four hexadecimal digits. */
function isHex4(bytes: Uint8Array, from: number, to: number): boolean {
  if (from + 4 > to) return false;
  for (let at = from; at < from + 4; at++) {
    const byte = bytes[at]!;
    const isHex = (byte >= 0x30 && byte <= 0x39) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);
    if (!isHex) return false;
  }
  return true;
}

/** Four hexadecimal digits below 0080. */
const isAscii = (bytes: Uint8Array, at: number): boolean =>
  bytes[at] === ZERO && bytes[at + 1] === ZERO && bytes[at + 2]! >= ZERO && bytes[at + 2]! < ZERO + 8;

export const NO_JSON_TEXT = -1;

const SPACE = 0x20;
const BACKSLASH = 0x5c;
/** What may follow it, next to `u`. */
const ESCAPED: readonly number[] = [...Buffer.from('"\\/bfnrt')];
const LETTER_U = 0x75;
const ZERO = 0x30;
