import { expect, test } from "bun:test";
import { contextLengths } from "../../src/surfaces/context-lengths.ts";

/** As providers say it. */
const MESSAGES: [string, string, number | null, number | null][] = [
  ["Anthropic", "prompt is too long: 209321 tokens > 200000 maximum", 209_321, 200_000],
  [
    "Anthropic, with the ceiling",
    "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length",
    242_959,
    200_000,
  ],
  [
    "OpenAI",
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 10234 tokens. Please reduce the length of the messages.",
    10_234,
    8_192,
  ],
  [
    "OpenAI, with the ceiling",
    "This model's maximum context length is 4097 tokens, however you requested 5360 tokens (1360 in your prompt; 4000 for the completion).",
    5_360,
    4_097,
  ],
  [
    "vLLM",
    "This model's maximum context length is 32768 tokens. However, your request has 40000 input tokens. Please reduce the length of the input messages.",
    40_000,
    32_768,
  ],
  [
    "xAI",
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    140_000,
    131_072,
  ],
  [
    "Gemini",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    1_200_000,
    1_048_576,
  ],
  [
    "Gemini, without the count",
    "The input token count exceeds the maximum number of tokens allowed 1048576.",
    null,
    1_048_576,
  ],
  [
    "SGLang",
    "The input (35000 tokens) is longer than the model's context length (32768 tokens).",
    35_000,
    32_768,
  ],
  [
    "llama.cpp",
    "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
    5_000,
    4_096,
  ],
  [
    "Together",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 100 `max_new_tokens`",
    9_100,
    8_193,
  ],
  [
    "Moonshot",
    "Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)",
    140_000,
    131_072,
  ],
  ["Moonshot, briefly", "Invalid request: Your request exceeded model token limit: 131072", null, 131_072],
  [
    "Mistral",
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    40_000,
    32_768,
  ],
  [
    "Alibaba",
    "InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]",
    null,
    204_800,
  ],
  ["with commas", "prompt is too long: 209,321 tokens > 200,000 maximum", 209_321, 200_000],
  ["a pair that is none", "prompt is too long: 10 tokens > 200000 maximum", null, null],
  ["no number", "Your input exceeds the context window of this model.", null, null],
];

test.each(MESSAGES)("%s: %s", (_, sentence, tokens, most) => {
  expect(contextLengths(sentence)).toEqual(most === null ? null : { tokens, most });
});

test("a sentence of the longest kind is looked through without delay", () => {
  const endless = "maximum context length is 1 ".repeat(1_000) + "(".repeat(20_000);
  expect(contextLengths(endless)?.most).toBe(1);
});
