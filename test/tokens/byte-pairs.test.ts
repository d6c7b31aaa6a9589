import { describe, expect, test } from "bun:test";
import { countTokens as countCl100k } from "gpt-tokenizer/encoding/cl100k_base";
import { countTokens as countO200k } from "gpt-tokenizer/encoding/o200k_base";
import { Families } from "../../src/tokens/families.ts";
import { rounds } from "../rounds.ts";
import { Random } from "../sim/random.ts";

const families = new Families();
const o200k = await families.get("o200k");
const cl100k = await families.get("cl100k");
const SPECIAL_IS_TEXT = { disallowedSpecial: new Set<string>() };

const random = new Random(20_261_122);
const below = (most: number) => random.below(most);
const within = (from: number, to: number) => String.fromCodePoint(from + below(to - from));
const oneOf = <T>(pieces: readonly T[]) => random.pick(pieces);

/** A character, or a little more, of each kind of text. */
const KINDS: Readonly<Record<string, () => string>> = {
  letters: () => within(0x61, 0x7b),
  "two letters": () => oneOf(["a", "b"]),
  capitals: () => within(0x41, 0x5b),
  ASCII: () => within(0, 0x80),
  base64: () => oneOf([within(0x61, 0x7b), within(0x41, 0x5b), within(0x30, 0x3a), "+", "/"]),
  spaces: () => oneOf([" ", "\n", "\t", "\r\n"]),
  signs: () => oneOf(["-", "=", "_", "*", "/"]),
  accents: () => oneOf(["é", "e\u0301", "ß", "\u0301"]),
  CJK: () => within(0x4e00, 0x9fff),
  hangul: () => within(0xac00, 0xd7a3),
  thai: () => within(0xe01, 0xe3a),
  emoji: () => oneOf([within(0x1f300, 0x1f600), "\u200d", "\ufe0f"]),
  cuneiform: () => within(0x12000, 0x12399),
  "anything, halves of pairs too": () => within(0, 0xfefe),
  syllables: () => oneOf(["the", " of", "ing", "'s", "'LL", "<|endoftext|>", "tion", " a"]),
};
const textOf = (length: number, ...kinds: (() => string)[]) => {
  const pieces: string[] = [];
  for (let size = 0; size < length; size += pieces.at(-1)!.length) pieces.push(oneOf(kinds)());
  return pieces.join("");
};

/** By OpenAI's tiktoken 1.0.22. The other reference takes U+FEFF for a space, and U+0085 for none. */
const TIKTOKEN: readonly [text: string, o200k: number, cl100k: number][] = [
  ["\ufeffHello", 2, 2],
  ["a\ufeff\ufeffb \ufeff c", 5, 6],
  ["x\u0085y", 4, 4],
  ["one \u0085 two\u0085\u0085", 8, 8],
  ["\ufeff\n\t\ufeff  using System;", 7, 7],
  ["naïve café 你好，世界 안녕하세요 🏳️‍🌈", 17, 24],
  ["\u2028\u3000\u00a0 end", 4, 5],
];

describe("counts are the reference tokenizer's", () => {
  test.each(Object.keys(KINDS))("of %s, alone and mixed with every other kind", (name) => {
    for (const other of Object.keys(KINDS)) {
      for (let round = 0; round < rounds(2, 8); round++) {
        const text = textOf(1 + below(300), KINDS[name]!, KINDS[other]!);
        expect([text, o200k.count(text)]).toEqual([text, countO200k(text, SPECIAL_IS_TEXT)]);
        expect([text, cl100k.count(text)]).toEqual([text, countCl100k(text, SPECIAL_IS_TEXT)]);
      }
    }
  });

  // Longer than a window: its seams must not show.
  test.each(Object.keys(KINDS))("of %s without end", (name) => {
    const kind = KINDS[name]!;
    const bytesOfOne = Buffer.byteLength(textOf(100, kind)) / 100;
    const text = textOf(10_000 / bytesOfOne, kind);
    expect(o200k.count(text)).toBe(countO200k(text, SPECIAL_IS_TEXT));
  });

  test.each(TIKTOKEN)("of %j: %d and %d", (text, inO200k, inCl100k) => {
    expect([o200k.count(text), cl100k.count(text)]).toEqual([inO200k, inCl100k]);
  });
});

describe("work grows with the bytes, whatever they are", () => {
  const stepsOf = (text: string) => {
    const before = o200k.steps;
    const tokens = o200k.count(text);
    const bytes = Buffer.byteLength(text);
    expect(tokens).toBeLessThanOrEqual(bytes);
    return (o200k.steps - before) / bytes;
  };

  test.each(Object.keys(KINDS))("%s", (name) => {
    const [small, large] = [20_000, 100_000].map((length) => stepsOf(textOf(length, KINDS[name]!))) as [
      number,
      number,
    ];
    expect(large).toBeLessThan(small * 1.5 + 1);
    expect(large).toBeLessThan(MAX_STEPS_A_BYTE);
  });

  test.each(["a", " ", "-", "\n", "\u{1F600}", "ab", "中", "A"])("%j again and again", (piece) => {
    const text = (bytes: number) => piece.repeat(bytes / Buffer.byteLength(piece));
    const [small, large] = [stepsOf(text(20_000)), stepsOf(text(120_000))];
    expect(large).toBeLessThan(small * 1.5 + 1);
    expect(large).toBeLessThan(MAX_STEPS_A_BYTE);
  });

  test("one word of a megabyte", () => {
    const letters = textOf(100_000, KINDS.letters!);
    expect(stepsOf(letters.repeat(10))).toBeLessThan(MAX_STEPS_A_BYTE);
  });
});

/** The most is for runs of one sign, whose tokens are long; prose takes less than one. */
const MAX_STEPS_A_BYTE = 64;
