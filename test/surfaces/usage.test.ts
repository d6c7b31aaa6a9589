import { describe, expect, test } from "bun:test";
import { readAnthropicBeginning, readAnthropicUsage, readOpenAiUsage } from "../../src/surfaces/usage.ts";

const ITERATIONS = [
  { type: "compaction", input_tokens: 150_000, cache_read_input_tokens: 10, output_tokens: 2_000 },
  { type: "message", input_tokens: 3_000, output_tokens: 40 },
];

test("a summary that Anthropic made on the way is billed next to the answer, whose sums leave it out", () => {
  const usage = { input_tokens: 3_000, output_tokens: 40, iterations: ITERATIONS };
  const { parts: _, ...sum } = readAnthropicUsage(usage, null)!;
  expect(sum).toEqual({
    input: 153_000,
    cacheRead: 10,
    cacheWrite: 0,
    output: 2_040,
    reasoning: 0,
    // Neither prompt was longer: a price that steps with the prompt counts each by itself.
    longestPrompt: 150_010,
  });
});

test("in a stream it is reported at the end, and counted once", () => {
  const started = readAnthropicUsage({ input_tokens: 3_000, output_tokens: 1, iterations: null }, null);
  const ended = readAnthropicUsage(
    { input_tokens: 3_000, output_tokens: 40, iterations: ITERATIONS },
    started,
  );
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

test("summaries of more tokens than any model can use are not believed; the rest is", () => {
  const iterations = Array.from({ length: 100 }, () => ({
    type: "compaction",
    input_tokens: 900_000_000,
    output_tokens: 1,
  }));
  expect(readAnthropicUsage({ input_tokens: 5, output_tokens: 6, iterations }, null)).toMatchObject({
    input: 5,
    output: 6,
  });
});

describe("thoughts are part of the answer's price, whichever way a host counts them", () => {
  test.each<[string, object, object]>([
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
      "xAI: separate, and counted in the total",
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
    ["neither an answer nor a total", { prompt_tokens: 6 }, { input: 6, output: 0 }],
    [
      "an answer that cannot be true",
      { prompt_tokens: 6, completion_tokens: -1, total_tokens: 5 },
      { input: 6, output: 0 },
    ],
  ])("%s", (_how, usage, expected) => {
    expect(readOpenAiUsage(usage)).toMatchObject(expected);
  });
});

test.each([
  ["OpenAI", { prompt_tokens_details: { cached_tokens: 16 } }],
  ["DeepSeek", { prompt_cache_hit_tokens: 16, prompt_cache_miss_tokens: 2 }],
  ["Moonshot", { cached_tokens: 16 }],
])("what was read from a cache is found where %s reports it", (_host, reported) => {
  const usage = { prompt_tokens: 18, completion_tokens: 3, total_tokens: 21, ...reported };
  expect(readOpenAiUsage(usage)).toMatchObject({ input: 2, cacheRead: 16, output: 3 });
});

/** As hosts were seen to report; only what they say of the tokens. */
describe("dialects", () => {
  const details = (cached_tokens: number, more: object = {}) => ({
    prompt_tokens_details: { cached_tokens, ...more },
  });
  const thought = (reasoning_tokens: number) => ({ completion_tokens_details: { reasoning_tokens } });
  test.each<[string, object, object]>([
    [
      "OpenAI: the cache is a part of the prompt",
      { prompt_tokens: 2_006, completion_tokens: 300, total_tokens: 2_306, ...details(1_920) },
      { input: 86, cacheRead: 1_920, output: 300, reasoning: 0 },
    ],
    [
      "Groq: the same, and its times next to it",
      {
        queue_time: 0.04,
        prompt_tokens: 3_829,
        prompt_time: 0.02,
        completion_tokens: 48,
        total_tokens: 3_877,
        ...details(3_584),
      },
      { input: 245, cacheRead: 3_584, output: 48 },
    ],
    [
      "xAI: the cache is a part of the prompt, thoughts are next to the answer",
      {
        prompt_tokens: 2_640,
        completion_tokens: 182,
        total_tokens: 3_494,
        ...details(473, { text_tokens: 2_640, audio_tokens: 0, image_tokens: 0 }),
        ...thought(672),
      },
      { input: 2_167, cacheRead: 473, output: 854, reasoning: 672 },
    ],
    [
      "Azure, of Grok: the cache is next to the prompt, and the total says so",
      { prompt_tokens: 13, completion_tokens: 5, total_tokens: 178, ...details(160) },
      { input: 13, cacheRead: 160, output: 5, reasoning: 0 },
    ],
    [
      "Azure, of Grok: so are thoughts",
      { prompt_tokens: 13, completion_tokens: 5, total_tokens: 242, ...details(160), ...thought(64) },
      { input: 13, cacheRead: 160, output: 69, reasoning: 64 },
    ],
    [
      "Azure, of Grok: also where the prompt is the larger part",
      { prompt_tokens: 900, completion_tokens: 5, total_tokens: 1_065, ...details(160) },
      { input: 900, cacheRead: 160, output: 5, reasoning: 0 },
    ],
    [
      "a cache larger than its prompt, without a total: it must be next to it",
      { prompt_tokens: 13, completion_tokens: 5, ...details(160) },
      { input: 13, cacheRead: 160, output: 5 },
    ],
    [
      "a cache larger than its prompt, of which the total knows nothing: it is not believed",
      { prompt_tokens: 13, completion_tokens: 5, total_tokens: 18, ...details(160) },
      { input: 13, cacheRead: 0, output: 5 },
    ],
    [
      "thoughts as many as the cache: the total has them once, and they are the thoughts",
      { prompt_tokens: 100, completion_tokens: 5, total_tokens: 137, ...details(32), ...thought(32) },
      { input: 68, cacheRead: 32, output: 37, reasoning: 32 },
    ],
    [
      "one bad member: the cache",
      { prompt_tokens: 9, completion_tokens: 5, ...details(-1) },
      { input: 9, cacheRead: 0, output: 5 },
    ],
    [
      "one bad member: thoughts",
      { prompt_tokens: 9, completion_tokens: 5, ...thought(1.5) },
      { input: 9, output: 5, reasoning: 0 },
    ],
    ["one bad member: the prompt", { prompt_tokens: "9", completion_tokens: 5 }, { input: 0, output: 5 }],
    ["one bad member: the answer", { prompt_tokens: 9, completion_tokens: 1e20 }, { input: 9, output: 0 }],
    [
      "more thoughts than answer, without a total",
      { prompt_tokens: 9, completion_tokens: 5, ...thought(50) },
      { input: 9, output: 5, reasoning: 5 },
    ],
  ])("%s", (_how, usage, expected) => {
    expect(readOpenAiUsage(usage)).toMatchObject(expected);
  });

  const chat = (prompt_tokens: number, completion_tokens: number, more: object = {}) => ({
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    ...more,
  });
  test.each<[string, unknown[], object | null]>([
    [
      "vLLM's continuous usage: each report has all so far",
      [chat(7, 1), chat(7, 2), chat(7, 60)],
      { input: 7, output: 60 },
    ],
    ["usage in every chunk, null until the end", [null, null, chat(7, 60)], { input: 7, output: 60 }],
    ["a last report of nothing", [chat(7, 60), chat(0, 0)], { input: 7, output: 60 }],
    ["a last report of less", [chat(7, 60), chat(7, 10)], { input: 7, output: 60 }],
    ["a last report that is none", [chat(7, 60), { prompt_tokens: -1 }, "usage"], { input: 7, output: 60 }],
    [
      "the prompt first, the answer last",
      [{ prompt_tokens: 7 }, { completion_tokens: 60 }],
      { input: 7, output: 60 },
    ],
    [
      "a first guess of the prompt, then the cache",
      [chat(30, 1), chat(12, 60, details(10))],
      { input: 2, cacheRead: 10, output: 60 },
    ],
    ["thoughts reported once", [chat(7, 50, thought(40)), chat(7, 60)], { output: 60, reasoning: 40 }],
    ["what it cost, reported once", [chat(7, 50, { cost: 0.5 }), chat(7, 60)], { output: 60, costUsd: 0.5 }],
    ["nothing at all", [null, {}, []], null],
  ])("chat, several reports in a stream: %s", (_how, reports, expected) => {
    const used = reports.reduce<ReturnType<typeof readOpenAiUsage>>(
      (before, report) => readOpenAiUsage(report, before),
      null,
    );
    if (expected === null) expect(used).toBeNull();
    else expect(used).toMatchObject(expected);
  });

  const anthropic = (input_tokens: number, output_tokens: number, more: object = {}) => ({
    input_tokens,
    output_tokens,
    ...more,
  });
  test.each<[string, unknown[], object]>([
    ["the answer alone at the end", [{ output_tokens: 60 }], { input: 7, cacheRead: 3, output: 60 }],
    [
      "all of it at the end",
      [anthropic(9, 60, { cache_read_input_tokens: 1 })],
      { input: 9, cacheRead: 1, output: 60 },
    ],
    ["a last report of nothing", [anthropic(7, 60), anthropic(0, 0)], { input: 7, output: 60 }],
    ["a last report of less", [anthropic(7, 60), anthropic(7, 10)], { input: 7, output: 60 }],
    ["one bad member: the prompt", [anthropic(-1, 60)], { input: 7, cacheRead: 3, output: 60 }],
    ["one bad member: the answer", [anthropic(9, 1.5)], { input: 9, output: 0 }],
  ])("messages, after a beginning that reported the prompt: %s", (_how, reports, expected) => {
    const started = readAnthropicBeginning(anthropic(7, 1, { cache_read_input_tokens: 3 }));
    expect(
      reports.reduce<typeof started>((before, one) => readAnthropicUsage(one, before), started),
    ).toMatchObject(expected);
  });
});
