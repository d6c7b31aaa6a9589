import { expect, test } from "bun:test";
import { sumUsage, type UsageRow } from "../../src/store/usage/usage-sums.ts";

const TOKENS = { input: 1, cache_read: 0, cache_write: 0, output: 2 };
const row = (charged: number, tags?: object): UsageRow => ({
  at: 0,
  keyId: "key_1",
  state: "settled",
  charged,
  body: JSON.stringify({
    tags,
    model: "a/b",
    model_requested: "a/b",
    host: "h",
    attempts: [],
    tokens: TOKENS,
    first_token_ms: 1,
  }),
});

test("of more values than are listed, the most expensive are, and the sum of the others is next to them", () => {
  const rows = Array.from({ length: 1_200 }, (_, at) => row(at, { user: `u${at}` }));
  const { tagValues, otherTagValues } = sumUsage([...rows, row(7)], { stretchMs: 1, tag: "user" }, 10_000);
  expect([tagValues.length, tagValues[0]]).toEqual([
    1_000,
    { value: "u1199", requests: 1, failed: 0, chargedNano: 1_199, inputTokens: 1, outputTokens: 2 },
  ]);
  // u0 to u199, with the receipt without the tag in u200's place.
  expect(otherTagValues!.requests).toBe(201);
  const all = tagValues.reduce((sum, one) => sum + one.chargedNano, otherTagValues!.chargedNano);
  expect(all).toBe((1_199 * 1_200) / 2 + 7);
});

test("a tag that is named like a member that every object has is one like any other", () => {
  const { tagValues } = sumUsage(
    [row(1, { other: "x" }), row(2, { constructor: "y" }), row(3)],
    { stretchMs: 1, tag: "constructor" },
    10,
  );
  expect(tagValues.map(({ value, chargedNano }) => [value, chargedNano])).toEqual([
    [null, 4],
    ["y", 2],
  ]);
});
