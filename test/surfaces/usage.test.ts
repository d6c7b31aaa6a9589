import { describe, expect, test } from "bun:test";
import { readAnthropicUsage, readOpenAiUsage } from "../../src/surfaces/usage.ts";

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

test("summaries of more tokens than any model can use make the report unbelievable", () => {
  const iterations = Array.from({ length: 100 }, () => ({
    type: "compaction",
    input_tokens: 900_000_000,
    output_tokens: 1,
  }));
  expect(readAnthropicUsage({ input_tokens: 5, output_tokens: 6, iterations }, null)).toBeNull();
});

describe("thoughts are part of the answer's price, whichever way a host counts them", () => {
  test.each<[string, object, { output: number; reasoning: number } | null]>([
    [
      "OpenAI: inside",
      {
        prompt_tokens: 32,
        completion_tokens: 103,
        total_tokens: 135,
        completion_tokens_details: { reasoning_tokens: 94 },
      },
      { output: 103, reasoning: 94 },
    ],
    [
      "xAI: beside, and counted in the total",
      {
        prompt_tokens: 32,
        completion_tokens: 9,
        total_tokens: 135,
        completion_tokens_details: { reasoning_tokens: 94 },
      },
      { output: 103, reasoning: 94 },
    ],
    [
      "xAI's responses: inside",
      {
        input_tokens: 32,
        output_tokens: 210,
        total_tokens: 242,
        output_tokens_details: { reasoning_tokens: 201 },
      },
      { output: 210, reasoning: 201 },
    ],
    [
      "Gemini: in the total alone",
      { prompt_tokens: 6, completion_tokens: 11, total_tokens: 823 },
      { output: 817, reasoning: 806 },
    ],
    [
      "Gemini, where thoughts used up the ceiling",
      { prompt_tokens: 21, total_tokens: 81 },
      { output: 60, reasoning: 60 },
    ],
    [
      "a total that is less than its parts tells nothing",
      { prompt_tokens: 6, completion_tokens: 11, total_tokens: 0 },
      { output: 11, reasoning: 0 },
    ],
    [
      "nor does one that cannot be true",
      { prompt_tokens: 6, completion_tokens: 11, total_tokens: 1e20 },
      { output: 11, reasoning: 0 },
    ],
    ["neither an answer nor a total", { prompt_tokens: 6 }, null],
    ["an answer that cannot be true", { prompt_tokens: 6, completion_tokens: -1, total_tokens: 5 }, null],
  ])("%s", (_how, usage, told) => {
    const read = readOpenAiUsage(usage);
    if (told === null) expect(read).toBeNull();
    else expect(read).toMatchObject(told);
  });
});

test.each([
  ["OpenAI", { prompt_tokens_details: { cached_tokens: 16 } }],
  ["DeepSeek", { prompt_cache_hit_tokens: 16, prompt_cache_miss_tokens: 2 }],
  ["Moonshot", { cached_tokens: 16 }],
])("what was read from a cache is found where %s tells it", (_host, told) => {
  const usage = { prompt_tokens: 18, completion_tokens: 3, total_tokens: 21, ...told };
  expect(readOpenAiUsage(usage)).toMatchObject({ input: 2, cacheRead: 16, output: 3 });
});
