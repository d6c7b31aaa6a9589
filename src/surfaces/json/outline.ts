import { copyInto, freeMemory, NO_BYTES } from "./bytes.ts";
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
} from "./json-scan.ts";

/**
 * The bytes of a JSON object without most of the long texts in one list of it: the beginning of each text stays. Nine
 * tenths of an agent's request are text that no decision reads, and `JSON.parse` spends its time on them. What is cut is
 * checked as strictly as a parser does, and all else stays as it is. So the outline is JSON if and only if the bytes
 * are, and parses to the same lists, objects, names, numbers and short texts, whatever escapes, duplicates and spaces
 * they have. The bytes must be valid UTF-8.
 */
export class Outline {
  private kept = new Uint8Array(FIRST_BYTES);
  private keptBytes = 0;
  private bytes = NO_BYTES;
  private copied = 0;
  /** Where the first values of the list start and end in the bytes, in pairs. */
  turns: number[] = [];

  begin(bytes: Uint8Array): void {
    this.letGo();
    this.bytes = bytes;
    this.keptBytes = 0;
    this.copied = 0;
    this.turns = [];
  }

  /** Behind the list that starts at `from`; -1 where it is no list, is too deep, or does not end. */
  passList(from: number, mostDepth: number): number {
    const { bytes, turns } = this;
    if (bytes[from] !== OPEN_BRACKET) return -1;
    let depth = 1;
    let turn = from + 1;
    for (let at = from + 1; at < bytes.length; at++) {
      const byte = bytes[at]!;
      if (byte === QUOTE) {
        const end = shortTextEnd(bytes, at + 1);
        at = end === -1 ? this.passLongText(at + 1) : end;
        if (at === -1) return -1;
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        depth += 1;
        if (depth >= mostDepth) return -1;
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        depth -= 1;
        if (depth > 0) continue;
        if (turns.length < 2 * MAX_TURNS) turns.push(turn, at);
        return at + 1;
      } else if (byte === COMMA && depth === 1) {
        if (turns.length < 2 * MAX_TURNS) turns.push(turn, at);
        turn = at + 1;
      }
    }
    return -1;
  }

  /** The outline, once all is passed; it is valid until `letGo`, or the next `begin`. */
  end(): Uint8Array {
    this.keepTo(this.bytes.length);
    this.bytes = NO_BYTES;
    return this.kept.subarray(0, this.keptBytes);
  }

  letGo(): void {
    if (this.kept.length > MAX_KEPT_MEMORY) this.keepIn(new Uint8Array(FIRST_BYTES));
  }

  /** The closing quote of a text or name that is longer than a short one; -1 where it has none, or is broken. */
  private passLongText(from: number): number {
    const { bytes } = this;
    const cut = cutOf(bytes, from);
    const end = textEnd(bytes, cut === -1 ? from : cut);
    // A name stays whole, because it must not become another's.
    if (cut === -1 || end === -1 || bytes[skipSpace(bytes, end + 1, bytes.length)] === COLON) return end;
    this.keepTo(cut);
    this.copied = end;
    return end;
  }

  private keepTo(end: number): void {
    const { bytes, copied, keptBytes } = this;
    const needed = keptBytes + end - copied;
    if (needed > this.kept.length) {
      const larger = new Uint8Array(Math.max(needed, Math.min(2 * needed, bytes.length)));
      copyInto(larger, 0, this.kept, 0, keptBytes);
      this.keepIn(larger);
    }
    copyInto(this.kept, keptBytes, bytes, copied, end);
    this.keptBytes = needed;
    this.copied = end;
  }

  private keepIn(memory: Uint8Array<ArrayBuffer>): void {
    freeMemory(this.kept);
    this.kept = memory;
  }
}

/** The closing quote of a text that starts at `from`; -1 where it is longer than a short one, or has none. */
function shortTextEnd(bytes: Uint8Array, from: number): number {
  const most = Math.min(bytes.length, from + SHORT_TEXT_BYTES);
  for (let at = from; at < most; at++) {
    const byte = bytes[at];
    if (byte === BACKSLASH) at += 1;
    else if (byte === QUOTE) return at;
  }
  return -1;
}

/**
 * Where a long text may be cut: behind its beginning, between two characters. -1 where what is kept does not tell whether
 * the text is an address, which is decided by its scheme (request/account-references) behind spaces of any number.
 */
function cutOf(bytes: Uint8Array, from: number): number {
  let decided = false;
  let isEscaped = false;
  let at = from;
  while (at < from + KEPT_BYTES) {
    const byte = bytes[at]!;
    if (byte === BACKSLASH) {
      const escaped = bytes[at + 1]!;
      isEscaped = true;
      decided ||= escaped === QUOTE || escaped === SLASH || escaped === BACKSLASH;
      at += escaped === LETTER_U ? 6 : 2;
      continue;
    }
    decided ||= NO_SCHEME[byte] === 1 || (byte === SPACE && !isEscaped && isLetterBefore(bytes, at, from));
    at += 1;
  }
  while ((bytes[at]! & 0xc0) === 0x80) at += 1;
  return decided ? at : -1;
}

/** A space behind a letter ends what could be a scheme. Others may come before one, also escaped and beyond ASCII. */
const isLetterBefore = (bytes: Uint8Array, at: number, from: number): boolean =>
  at > from && bytes[at - 1]! > SPACE && bytes[at - 1]! < 0x80;

/** The closing quote of the text from `from` on, between two of its characters; -1 where a parser would not take it. */
function textEnd(bytes: Uint8Array, from: number): number {
  const { length } = bytes;
  let at = from;
  while (at < length) {
    // Four at a time take three quarters of the time.
    while (at + 4 <= length) {
      const kinds =
        KINDS[bytes[at]!]! | KINDS[bytes[at + 1]!]! | KINDS[bytes[at + 2]!]! | KINDS[bytes[at + 3]!]!;
      if (kinds !== 0) break;
      at += 4;
    }
    const byte = bytes[at]!;
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) {
      const escaped = bytes[at + 1]!;
      if (escaped === LETTER_U ? !isHex4(bytes, at + 2) : ESCAPED[escaped] !== 1) return -1;
      at += escaped === LETTER_U ? 6 : 2;
    } else if (byte < SPACE) return -1;
    else at += 1;
  }
  return -1;
}

function isHex4(bytes: Uint8Array, from: number): boolean {
  for (let at = from; at < from + 4; at++) if (HEX[bytes[at]!] !== 1) return false;
  return true;
}

const marking = (characters: string, others: readonly number[] = []): Uint8Array => {
  const table = new Uint8Array(256);
  for (const byte of [...Buffer.from(characters), ...others]) table[byte] = 1;
  return table;
};

const HEX = marking("0123456789abcdefABCDEF");
/** What may follow a backslash, next to `u`. */
const ESCAPED = marking('"\\/bfnrt');
/** First bytes of characters beyond ASCII none of which is a space. */
const LETTERS = Array.from({ length: 0x32 }, (_, n) => 0xc3 + n).filter(
  (byte) => ![0xe1, 0xe2, 0xe3, 0xef].includes(byte),
);
/** What is neither part of a scheme nor a space: a text with one of these is an address or is none by then. */
const NO_SCHEME = marking("!\"#$%&'()*,/:;<=>?@[]^_`{|}~", LETTERS);
/** Bytes that are not simply a part of a text's characters. */
const KINDS = marking('"\\', [...Array(0x20).keys()]);

const SPACE = 0x20;
const SLASH = 0x2f;
const LETTER_U = 0x75;
/** Texts up to this length stay whole. */
const SHORT_TEXT_BYTES = 256;
/** What stays of a longer one: 32 characters at least, however they are written. No name or kind that a decision knows is longer. */
const KEPT_BYTES = 192;
/** As many as conversations are known by (routing/conversation). */
const MAX_TURNS = 32;
const FIRST_BYTES = 16 * 1024;
/** Memory that stays for the next body. */
const MAX_KEPT_MEMORY = 256 * 1024;
