import { expect, test } from "bun:test";
import { autoVariant, isModelId } from "../../src/catalog/model-name.ts";

test.each([
  ["gateway/auto:fast", "fast"],
  ["gateway/auto:", ""],
  ["gateway/auto", null],
  ["openai/gpt-4o", null],
  ["openai/gateway/auto:fast", null],
])("%s asks for the automatic route %p", (name, variant) => {
  expect(autoVariant(name)).toBe(variant);
});

test.each([
  ["openai/gpt-4o", true],
  ["x-ai/grok-4.3", true],
  ["ollama/qwen3:0.6b", true],
  ["a/b", true],
  ["gpt-4o", false],
  ["openai/", false],
  ["/gpt-4o", false],
  ["a/b/c", false],
  ["openai/gpt 4o", false],
  ["openai/gpt-4o\n", false],
  ["openai/ü", false],
  [`openai/${"x".repeat(129)}`, false],
  ["gateway/auto:fast", false],
  ["gateway/x", false],
])("%s is a published id's form: %p", (text, is) => {
  expect(isModelId(text)).toBe(is);
});
