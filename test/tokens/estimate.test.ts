import { expect, test } from "bun:test";
import { estimateJsonText, estimateTokens } from "../../src/tokens/estimate.ts";

const TEXTS: readonly (readonly [says: string, json: string])[] = [
  ["plain letters", '"token"'],
  ["nothing", '""'],
  ["short escapes", String.raw`"a\n\t\"b\"\\\/"`],
  ["an escaped backslash before a letter u", String.raw`"\\u00e9"`],
  ["escaped ASCII, up to the last", String.raw`"\u0041\u007f\u007F"`],
  ["escaped signs outside ASCII", String.raw`"\u0080\u00e9\u00E9\u0100\u1000\ud83c\udf0d"`],
  ["two, three and four bytes", '"é ß こんにちは 🌍🌍"'],
];

for (const [says, json] of TEXTS) {
  test(`a text that is still JSON counts what it counts once it is read: ${says}`, () => {
    const bytes = Buffer.from(json);
    expect(estimateJsonText(bytes, 1, bytes.length - 1)).toBe(estimateTokens(JSON.parse(json)));
  });
}

test("the signs around a text do not count", () => {
  const bytes = Buffer.from('{"content":"abcd","more":"éé"}');
  expect(estimateJsonText(bytes, 12, 16)).toBe(1);
});
