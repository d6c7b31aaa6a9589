import type { RandomBytes } from "./random.ts";

/** Bitcoin's alphabet: no 0, O, I or l. */
const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/**
 * 58 × 4 = 232: bytes at or above it are thrown away, because folding them in would favour the first 24
 * letters.
 */
const UNBIASED_BELOW = 232;

export const BASE58_CLASS = `[${ALPHABET}]`;

/** `length` independent, uniformly distributed base58 characters: 5.86 bits each. */
export function randomBase58(length: number, random: RandomBytes): string {
  const text = scratch(length);
  if (drawn.length !== length + 16) drawn = new Uint8Array(length + 16);
  for (let written = 0; written < length; ) {
    random(drawn);
    for (let at = 0; at < drawn.length && written < length; at++) {
      const byte = drawn[at]!;
      if (byte < UNBIASED_BELOW) text[written++] = ALPHABET.charCodeAt(byte % 58);
    }
  }
  return text.toString("latin1", 0, length);
}

/** A whole number of so many characters, the most significant first; ordered as the numbers are. */
export function base58(value: number, characters: number): string {
  const text = scratch(characters);
  for (let left = value, at = characters - 1; at >= 0; at--, left = Math.floor(left / 58))
    text[at] = ALPHABET.charCodeAt(left % 58);
  return text.toString("latin1", 0, characters);
}

/** Memory that is used again, because each request has an id. */
let drawn = new Uint8Array();
let room = Buffer.alloc(0);

function scratch(length: number): Buffer {
  if (room.length < length) room = Buffer.alloc(length);
  return room;
}
