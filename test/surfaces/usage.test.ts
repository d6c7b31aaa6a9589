import { expect, test } from "bun:test";
import { readAnthropicUsage } from "../../src/surfaces/usage.ts";

const ITERATIONS = [
  { type: "compaction", input_tokens: 150_000, cache_read_input_tokens: 10, output_tokens: 2_000 },
  { type: "message", input_tokens: 3_000, output_tokens: 40 },
];

test("a summary that Anthropic made on the way is billed beside the answer, whose sums leave it out", () => {
  const usage = { input_tokens: 3_000, output_tokens: 40, iterations: ITERATIONS };
  expect(readAnthropicUsage(usage, null)).toEqual({
    input: 153_000,
    cacheRead: 10,
    cacheWrite: 0,
    output: 2_040,
    reasoning: 0,
  });
});

test("in a stream it is told at the end, and counted once", () => {
  const begun = readAnthropicUsage({ input_tokens: 3_000, output_tokens: 1, iterations: null }, null);
  const ended = readAnthropicUsage({ input_tokens: 3_000, output_tokens: 40, iterations: ITERATIONS }, begun);
  expect(ended).toMatchObject({ input: 153_000, output: 2_040 });
  const again = readAnthropicUsage({ input_tokens: 3_000, output_tokens: 40, iterations: ITERATIONS }, ended);
  expect(again).toMatchObject({ input: 153_000, output: 2_040 });
});

test("what is part of the sums already, or makes no sense, adds nothing", () => {
  for (const iterations of [[ITERATIONS[1]], [{ type: "compaction", input_tokens: -1 }], ["compaction"], {}])
    expect(readAnthropicUsage({ input_tokens: 5, output_tokens: 6, iterations }, null)).toMatchObject({
      input: 5,
      output: 6,
    });
});
