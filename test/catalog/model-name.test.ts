import { describe, expect, test } from "bun:test";
import { isModelId, parseModelName } from "../../src/catalog/model-name.ts";

describe("what a model's name asks for", () => {
  const published = (id: string) => id === "ollama/tiny:free";
  test.each([
    ["openai/gpt-4o", { kind: "model", id: "openai/gpt-4o" }],
    ["gateway/auto:fast", { kind: "auto", variant: "fast" }],
    ["gateway/auto:", { kind: "auto", variant: "" }],
    ["gateway/auto:free", { kind: "open", id: null }],
    ["openai/gpt-4o:free", { kind: "open", id: "openai/gpt-4o" }],
    ["ollama/tiny:free", { kind: "model", id: "ollama/tiny:free" }],
    ["gateway/auto", { kind: "model", id: "gateway/auto" }],
    ["", { kind: "model", id: "" }],
  ] as const)("%s", (text, name) => {
    expect(parseModelName(text, published)).toEqual(name);
  });
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
