import { expect, test } from "bun:test";
import { ChatCollector } from "../../../src/surfaces/chat/collector.ts";
import { MessagesCollector } from "../../../src/surfaces/messages/collector.ts";

/** So many tokens with something about each of them: copying the list for each would take minutes. */
const MANY = 200_000;

const chunk = (more: object) => ({ choices: [{ index: 0, ...more }] });
// biome-ignore lint/suspicious/noExplicitAny: a whole answer, of any language
const whole = (collector: ChatCollector | MessagesCollector): any => collector.whole();

test("log probabilities are collected as they come", () => {
  const collector = new ChatCollector();
  for (let at = 0; at < MANY; at++)
    collector.add(chunk({ delta: { content: "a" }, logprobs: { content: [{ token: "a", at }] } }));
  const { content } = whole(collector).choices[0].logprobs;
  expect(content).toHaveLength(MANY);
  expect(content.at(-1)).toEqual({ token: "a", at: MANY - 1 });
});

test("details of reasoning are collected as they come", () => {
  const collector = new ChatCollector();
  for (let at = 0; at < MANY; at++)
    collector.add(chunk({ delta: { reasoning_details: [{ type: "reasoning.text", text: String(at) }] } }));
  expect(whole(collector).choices[0].message.reasoning_details).toHaveLength(MANY);
});

test("parts of content are collected as they come", () => {
  const collector = new ChatCollector();
  for (let at = 0; at < MANY; at++) {
    const part =
      at % 2 === 0
        ? { type: "text", text: "a" }
        : { type: "thinking", thinking: [{ type: "text", text: "b" }] };
    collector.add(chunk({ delta: { content: [part] } }));
  }
  expect(whole(collector).choices[0].message.content).toHaveLength(MANY);
});

test("members that only this host has are collected as they come", () => {
  const collector = new ChatCollector();
  for (let at = 0; at < MANY; at++)
    collector.add(chunk({ delta: { content: "a", extra: { [`member ${at}`]: at } } }));
  expect(Object.keys(whole(collector).choices[0].message.extra)).toHaveLength(MANY);
});

test("what a host says at the end is collected as it comes", () => {
  const collector = new MessagesCollector();
  collector.add({ type: "message_start", message: { usage: { input_tokens: 1, output_tokens: 1 } } });
  for (let at = 0; at < MANY; at++) {
    const named = { [`member ${at}`]: at };
    collector.add({ type: "message_delta", delta: named, usage: { output_tokens: at, ...named } });
  }
  const { usage, ...message } = whole(collector);
  expect(Object.keys(message).length).toBeGreaterThan(MANY);
  expect(Object.keys(usage)).toHaveLength(MANY + 2);
  expect(usage).toMatchObject({ input_tokens: 1, output_tokens: MANY - 1 });
});

test("a member that is called as one of every object's is a host's like any other", () => {
  const collector = new ChatCollector();
  const named = JSON.parse('{ "__proto__": { "polluted": 1 }, "constructor": { "polluted": 1 } }');
  collector.add(chunk({ delta: { ...named, extra: named } }));
  collector.add(chunk({ delta: { ...named, extra: named } }));
  expect(whole(collector).choices[0].message.extra.constructor).toEqual({ polluted: 1 });
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  expect((Object as unknown as Record<string, unknown>).polluted).toBeUndefined();
});

test("citations are collected as they come", () => {
  const collector = new MessagesCollector();
  collector.add({ type: "message_start", message: {} });
  collector.add({ type: "content_block_start", content_block: { type: "text", text: "", citations: null } });
  for (let at = 0; at < MANY; at++)
    collector.add({ type: "content_block_delta", delta: { type: "citations_delta", citation: { at } } });
  expect(whole(collector).content[0].citations).toHaveLength(MANY);
});

test.each([["a text"], [7], [[]], [{ role: "assistant", content: "Hello" }]])(
  "a message of the host's next to its deltas, %p, is no part of what they come to",
  (message) => {
    const collector = new ChatCollector();
    collector.add(chunk({ delta: { content: "Hel" }, message }));
    collector.add(chunk({ delta: { content: "lo" }, message, finish_reason: "stop" }));
    expect(whole(collector).choices).toMatchObject([
      { message: { content: "Hello" }, finish_reason: "stop" },
    ]);
  },
);
