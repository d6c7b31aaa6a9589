import type { RandomBytes } from "./random.ts";

/** Bitcoin's alphabet: no 0, O, I or l. */
const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/** 58 × 4 = 232: bytes at or above it are thrown away, because folding them in would favour the first 24 letters. */
const UNBIASED_BELOW = 232;

export const BASE58_CLASS = `[${ALPHABET}]`;

/** `length` independent, uniformly distributed base58 characters: 5.86 bits each. */
export function randomBase58(length: number, random: RandomBytes): string {
  let text = "";
  const bytes = new Uint8Array(length + 16);
  while (text.length < length) {
    for (const byte of random(bytes)) {
      if (byte < UNBIASED_BELOW && text.length < length) text += ALPHABET[byte % 58];
    }
  }
  return text;
}

/** A whole number of so many characters, the most significant first; ordered as the numbers are. */
export function base58(value: number, characters: number): string {
  let text = "";
  for (let left = value; text.length < characters; left = Math.floor(left / 58))
    text = ALPHABET[left % 58] + text;
  return text;
}
