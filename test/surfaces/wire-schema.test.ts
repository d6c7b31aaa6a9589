import { describe, expect, test } from "bun:test";
import {
  chatReasoning,
  chatText,
  chatToolCall,
  messagesText,
  messagesThinking,
  messagesToolUse,
  responsesCustomToolCall,
  responsesReasoning,
  responsesText,
  responsesToolCall,
} from "../fakes/transcripts.ts";
import { violations, type WireName } from "./wire-schema.ts";

describe("what the fake hosts say is what the SDK packages publish", () => {
  test.each([
    ["chatCompletion", "chatChunk", [chatText(), chatToolCall(), chatReasoning()]],
    [
      "response",
      "responseEvent",
      [responsesText(), responsesToolCall(), responsesReasoning(), responsesCustomToolCall()],
    ],
    ["message", "messageEvent", [messagesText(), messagesToolUse(), messagesThinking()]],
  ] as const)("%s and %s", (whole, event, answers) => {
    for (const answer of answers) {
      expect(violations(whole, answer.whole, "host")).toEqual([]);
      for (const { data } of answer.events) {
        if (data === "[DONE]" || data === '{"type":"ping"}') continue;
        expect(violations(event, JSON.parse(data), "host")).toEqual([]);
      }
    }
  });
});

describe("a value that is not what the packages publish is caught, with its place", () => {
  const chunk = { id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [] };
  test.each<[WireName, unknown, string]>([
    ["chatChunk", { ...chunk, object: "chat.completion" }, "/object"],
    ["chatChunk", { ...chunk, id: undefined }, "id"],
    ["chatChunk", { ...chunk, choices: [{ index: 0, delta: { role: "bot" }, finish_reason: null }] }, "role"],
    ["chatCompletion", { ...chatText().whole, usage: { prompt_tokens: "7" } }, "usage"],
    ["responseEvent", { type: "response.output_text.delta", delta: "x" }, "content_index"],
    ["responseEvent", { type: "response.no_such_event" }, "type"],
    ["response", { ...responsesText().whole, output: [{ type: "message" }] }, "/output/0"],
    ["message", { ...messagesText().whole, content: [{ type: "text" }] }, "/content/0"],
    ["messageEvent", { type: "content_block_delta", index: 0, delta: { type: "text_delta" } }, "text"],
    ["messagesRequest", { model: "m", messages: [] }, "max_tokens"],
  ])("%s %j", (name, value, path) => {
    expect(violations(name, JSON.parse(JSON.stringify(value)), "host").join("\n")).toContain(path);
  });
});
