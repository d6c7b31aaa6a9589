import { expect, test } from "bun:test";
import { familyOf } from "../../src/tokens/model-family.ts";

test.each<[string, string]>([
  ["openai/gpt-4", "cl100k"],
  ["gpt-4-0613", "cl100k"],
  ["gpt-4-32k", "cl100k"],
  ["openai/gpt-4-turbo", "cl100k"],
  ["gpt-4-turbo-2024-04-09", "cl100k"],
  ["gpt-4-1106-preview", "cl100k"],
  ["gpt-3.5-turbo-0125", "cl100k"],
  ["gpt-35-turbo", "cl100k"],
  ["openai/gpt-4o", "o200k"],
  ["openai/gpt-4o-mini-2024-07-18", "o200k"],
  ["openai/gpt-4.1", "o200k"],
  ["openai/gpt-4.5-preview", "o200k"],
  ["openai/gpt-5", "o200k"],
  ["openai/gpt-oss-120b", "o200k"],
  ["my/gpt-4-like", "o200k"],
  ["anthropic/claude-sonnet-5", "o200k"],
])("%s is counted in %s", (model, family) => {
  expect<string>(familyOf(model)).toBe(family);
});

test("an operator's own name for a model: what the host calls it decides", () => {
  expect(familyOf("our/default", "gpt-4-0613")).toBe("cl100k");
});
