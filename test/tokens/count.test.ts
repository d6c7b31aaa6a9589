import { describe, expect, test } from "bun:test";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { countPromptTokens } from "../../src/tokens/count.ts";
import { Families } from "../../src/tokens/families.ts";

const counter = await new Families().get("o200k");
const tokensOf = (content: unknown) => countPromptTokens({ messages: [{ role: "user", content }] }, counter);
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
  ])("%s", (_, content) => expect(tokensOf(content)).toBeGreaterThanOrEqual(LEAST));
});

/** As OpenAI counts prompts of text (“How to count tokens with Tiktoken”). */
test.each<[string, object]>([
  ["a message", { messages: [{ role: "user", content: "Hello" }] }],
  ["a message in parts", { messages: [{ role: "user", content: [{ type: "text", text: "Hello" }] }] }],
  ["an input", { input: "Hello" }],
  [
    "an input of items",
    { input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hello" }] }] },
  ],
])("%s of one token has eight with its role and marks", (_, json) => {
  expect(countPromptTokens(json as never, counter)).toBe(8);
});

test.each<[string, object]>([
  [
    "messages",
    {
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello" },
      ],
    },
  ],
  ["instructions", { instructions: "Be brief.", input: "Hello" }],
  [
    "a system prompt",
    { system: [{ type: "text", text: "Be brief." }], messages: [{ role: "user", content: "Hello" }] },
  ],
])("what stands before it counts as a message, as %s", (_, json) => {
  expect(countPromptTokens(json as never, counter)).toBe(8 + 3 + 1 + 3);
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
])("an image's base64 is no text: %s", (_, content) => expect(tokensOf(content)).toBeLessThan(50));

test("tools that an item of the input adds count like those of the body", () => {
  const tools = [{ type: "function", name: "look", parameters: { type: "object", properties: { a: {} } } }];
  const message = { role: "user", content: "Hi" };
  const item = { type: "additional_tools", role: "developer", tools };
  const added = countPromptTokens({ input: [item, message] }, counter);
  const plain = countPromptTokens({ input: [{ ...item, tools: [] }, message], tools }, counter);
  expect(Math.abs(added - plain)).toBeLessThanOrEqual(2);
});
