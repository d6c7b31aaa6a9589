import { assert } from "../units/assert.ts";

/** The rank of each token by its bytes: a hash table over one array, where a `Map` would need a string for every look. */
export class TokenTable {
  lookups = 0;
  /** Bytes of the longest token. */
  readonly longest: number;
  private readonly bytes: Uint8Array;
  private readonly starts: Uint32Array;
  /** Ranks by hash, a number too high by one; 0 is free. */
  private readonly slots: Int32Array;
  private readonly mask: number;

  constructor(vocabulary: Vocabulary) {
    const utf8 = new TextEncoder();
    const tokens = vocabulary.map((token) => (typeof token === "string" ? utf8.encode(token) : token));
    assert(tokens.length < MAX_TOKENS, "a vocabulary of more tokens than there are ranks");
    let [length, longest] = [0, 0];
    for (const token of tokens) {
      length += token.length;
      longest = Math.max(longest, token.length);
    }
    this.longest = longest;
    this.bytes = new Uint8Array(length);
    this.starts = new Uint32Array(tokens.length + 1);
    this.slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * tokens.length)));
    this.mask = this.slots.length - 1;
    for (let rank = 0, start = 0; rank < tokens.length; rank++) {
      const token = tokens[rank]!;
      this.bytes.set(token, start);
      this.starts[rank + 1] = start + token.length;
      if (token.length > 0) this.slots[this.slot(this.bytes, start, start + token.length)] = rank + 1;
      start += token.length;
    }
  }

  /** -1 for what is no token. */
  rank(bytes: Uint8Array, from: number, to: number): number {
    this.lookups += 1;
    return to - from > this.longest ? -1 : this.slots[this.slot(bytes, from, to)]! - 1;
  }

  /** Where these bytes are, or would be. */
  private slot(bytes: Uint8Array, from: number, to: number): number {
    const { slots, mask, starts } = this;
    let hash = FNV_BASIS;
    for (let at = from; at < to; at++) hash = Math.imul(hash ^ bytes[at]!, FNV_PRIME);
    // Its low bits know little of the last byte's high ones.
    let slot = (hash ^ (hash >>> 15)) & mask;
    for (; ; slot = (slot + 1) & mask) {
      const rank = slots[slot]! - 1;
      if (rank < 0) return slot;
      const start = starts[rank]!;
      if (starts[rank + 1]! - start === to - from && this.equals(start, bytes, from, to)) return slot;
    }
  }

  private equals(start: number, bytes: Uint8Array, from: number, to: number): boolean {
    for (let at = from; at < to; at++) if (this.bytes[start + at - from] !== bytes[at]) return false;
    return true;
  }
}

/** Each token's text, or its bytes where they are no text, at its rank. */
export type Vocabulary = readonly (string | readonly number[])[];

const FNV_BASIS = 0x811c9dc5;
const FNV_PRIME = 0x01000193;
/** Ranks of 18 bits, so that a pair in a window is a number of 31. */
const MAX_TOKENS = 2 ** 18;
