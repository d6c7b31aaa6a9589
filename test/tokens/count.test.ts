import { describe, expect, test } from "bun:test";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { countPromptTokens } from "../../src/tokens/count.ts";

const said = (content: unknown) => countPromptTokens({ messages: [{ role: "user", content }] });
const LONG = "The quick brown fox jumps over the lazy dog. ".repeat(100);
const LEAST = countTokens(LONG);

describe("whatever a host may show to the model as text is counted", () => {
  test.each<[string, unknown]>([
    ["a text", LONG],
    ["a text that begins like a data URL", `data:${LONG}`],
    ["a plain-text document", [{ type: "document", source: { type: "text", data: LONG } }]],
    ["arguments of a call", [{ type: "tool_use", input: { data: LONG } }]],
    [
      "arguments that look like an image",
      [{ type: "tool_use", input: { type: "image", source: { data: LONG } } }],
    ],
    [
      "arguments that hide one deeper",
      [{ type: "tool_use", input: { content: [{ type: "image", source: { data: LONG } }] } }],
    ],
    [
      "the title of a document",
      [{ type: "document", title: LONG, source: { type: "base64", data: "QQ==" } }],
    ],
  ])("%s", (_, content) => expect(said(content)).toBeGreaterThanOrEqual(LEAST));
});

test.each<[string, unknown]>([
  ["chat", [{ type: "image_url", image_url: { url: `data:image/png;base64,${LONG}` } }]],
  ["responses", [{ type: "input_image", image_url: `data:image/png;base64,${LONG}` }]],
  ["messages", [{ type: "image", source: { type: "base64", media_type: "image/png", data: LONG } }]],
  [
    "messages, in a result",
    [{ type: "tool_result", content: [{ type: "image", source: { type: "base64", data: LONG } }] }],
  ],
  ["a file", [{ type: "file", file: { filename: "a.pdf", file_data: LONG } }]],
])("an image's base64 is no text: %s", (_, content) => expect(said(content)).toBeLessThan(50));

test("tools that an item of the input adds count like those of the body", () => {
  const tools = [{ type: "function", name: "look", parameters: { type: "object", properties: { a: {} } } }];
  const message = { role: "user", content: "Hi" };
  const item = { type: "additional_tools", role: "developer", tools };
  const added = countPromptTokens({ input: [item, message] });
  const plain = countPromptTokens({ input: [{ ...item, tools: [] }, message], tools });
  expect(Math.abs(added - plain)).toBeLessThanOrEqual(2);
});

// Each would take hours if it were counted as one word.
test.each([
  ["letters", "a"],
  ["spaces", " "],
  ["signs", "-"],
  ["lines", "\n"],
  ["pictures", "\u{1F600}"],
])("a megabyte of %s is counted in pieces", (_, piece) => {
  const text = piece.repeat(1_000_000 / piece.length);
  const whole = countTokens(piece.repeat(2_000)) * (text.length / piece.length / 2_000);
  expect(said(text)).toBeGreaterThan(whole * 0.9);
  expect(said(text)).toBeLessThan(whole * 1.2 + 1_000_000 / 256 + 100);
});
