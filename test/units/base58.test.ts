import { expect, test } from "bun:test";
import { base58, randomBase58 } from "../../src/units/base58.ts";

test.each([
  [0, 3, "111"],
  [57, 3, "11z"],
  [58, 3, "121"],
  [58 ** 3 - 1, 3, "zzz"],
])("%i in %i characters is %s", (value, characters, text) => {
  expect(base58(value, characters)).toBe(text);
});

test("bytes of 232 and more are thrown away, because the first letters would be more frequent", () => {
  let next = 230;
  const random = (bytes: Uint8Array) => {
    for (const at of bytes.keys()) bytes[at] = next++ % 256;
    return bytes;
  };
  expect(randomBase58(4, random)).toBe("yz12");
});
