import { describe, expect, test } from "bun:test";
import type { SurfaceName } from "../../src/catalog/catalog.ts";
import {
  chatText,
  chatToolCall,
  messagesText,
  messagesThinking,
  messagesToolUse,
  responsesCustomToolCall,
  responsesReasoning,
  responsesText,
  responsesToolCall,
  type SseEvent,
  sseText,
} from "../fakes/transcripts.ts";
import { brokenRules, type Loose } from "./event-order.ts";

/** The machines themselves: what is well ordered passes, and every rule can be broken. */
type Spoil = (events: Loose[]) => Loose[];

const [CHAT, RESPONSES, MESSAGES] = ["chat.completions", "responses", "messages"] as const;

const without =
  (match: (event: Loose) => boolean): Spoil =>
  (events) => {
    const at = events.findIndex(match);
    expect(at).not.toBe(-1);
    return events.toSpliced(at, 1);
  };
const twice =
  (match: (event: Loose) => boolean): Spoil =>
  (events) =>
    events.toSpliced(events.findIndex(match), 0, events.find(match));
const changed =
  (match: (event: Loose) => boolean, change: (event: Loose) => void): Spoil =>
  (events) => {
    change(events.find(match));
    return events;
  };
/** Responses, numbered again: another rule than the numbers is to be seen. */
const renumbered =
  (spoil: Spoil): Spoil =>
  (events) =>
    spoil(events).map((event, sequence_number) => ({ ...event, sequence_number }));
const is = (type: string) => (event: Loose) => event.type === type;
const calls = (event: Loose) => event.choices?.[0]?.delta.tool_calls !== undefined;
const usage = (event: Loose) => event.usage;

function spoilt(events: readonly SseEvent[], spoil: Spoil): string {
  const values = spoil(events.map(({ data }) => (data === "[DONE]" ? data : JSON.parse(data))));
  return sseText(
    values.map((value) =>
      typeof value === "string"
        ? { data: value }
        : { ...(value.type === undefined ? {} : { event: value.type }), data: JSON.stringify(value) },
    ),
  );
}

test.each<[SurfaceName, readonly SseEvent[]]>([
  [CHAT, chatText().events],
  [CHAT, chatToolCall().events],
  [RESPONSES, responsesText().events],
  [RESPONSES, responsesToolCall().events],
  [RESPONSES, responsesReasoning().events],
  [RESPONSES, responsesCustomToolCall().events],
  [MESSAGES, messagesText().events],
  [MESSAGES, messagesToolUse().events],
  [MESSAGES, messagesThinking().events],
])("%s: a documented stream breaks no rule", (surface, events) => {
  expect(brokenRules(surface, sseText(events), { usage: true })).toEqual([]);
});

describe("a broken rule is named", () => {
  test.each<[string, readonly SseEvent[], Spoil]>([
    ["no [DONE]", chatText().events, (events) => events.slice(0, -1)],
    ["something follows the end", chatText().events, (events) => [...events, events[1]]],
    [
      "does not begin with its role",
      chatText().events,
      changed(
        () => true,
        (event) => {
          delete event.choices[0].delta.role;
        },
      ),
    ],
    ["role after the first", chatText().events, (events) => [events[0], ...events]],
    ["no finish_reason", chatText().events, without((event) => event.choices?.[0]?.finish_reason === "stop")],
    [
      "goes on after its end",
      chatText().events,
      twice((event) => event.choices?.[0]?.finish_reason === "stop"),
    ],
    ["0 usages", chatText().events, without(usage)],
    ["2 usages", chatText().events, twice(usage)],
    [
      "usage before the end",
      chatText().events,
      (events) => [events[0], events.find(usage), ...events.slice(1)],
    ],
    [
      "begins without an id",
      chatToolCall().events,
      changed(calls, (event) => {
        delete event.choices[0].delta.tool_calls[0].id;
      }),
    ],
    ["says its id or name again", chatToolCall().events, twice(calls)],
    [
      "id, created or model changes",
      chatText().events,
      changed(
        () => true,
        (event) => {
          event.id = "other";
        },
      ),
    ],
  ])("chat completions: %s", (rule, events, spoil) => {
    expect(brokenRules(CHAT, spoilt(events, spoil), { usage: true }).join("\n")).toContain(rule);
  });

  test.each<[string, readonly SseEvent[], Spoil]>([
    ["event 2 has sequence_number 3", responsesText().events, without(is("response.output_item.added"))],
    ["comes first", responsesText().events, renumbered(without(is("response.created")))],
    ["comes second", responsesText().events, renumbered(without(is("response.in_progress")))],
    ["outside an item", responsesText().events, renumbered(without(is("response.output_item.added")))],
    ["outside a part", responsesText().events, renumbered(without(is("response.content_part.added")))],
    [
      "another text than the deltas",
      responsesText().events,
      renumbered(without(is("response.output_text.delta"))),
    ],
    ["done before its text", responsesText().events, renumbered(without(is("response.output_text.done")))],
    ["done before its part", responsesText().events, renumbered(without(is("response.content_part.done")))],
    ["while an item is open", responsesText().events, renumbered(without(is("response.output_item.done")))],
    [
      "words differ",
      responsesToolCall().events,
      renumbered(without(is("response.function_call_arguments.delta"))),
    ],
    [
      "other words",
      responsesToolCall().events,
      renumbered(without(is("response.function_call_arguments.done"))),
    ],
    [
      "words differ",
      responsesCustomToolCall().events,
      renumbered(without(is("response.custom_tool_call_input.delta"))),
    ],
    [
      "outside a part",
      responsesReasoning().events,
      renumbered(without(is("response.reasoning_summary_part.added"))),
    ],
    ["no completed", responsesText().events, (events) => events.slice(0, -1)],
    ["after response.completed", responsesText().events, renumbered(twice(is("response.completed")))],
    [
      "does not repeat the items",
      responsesText().events,
      changed(is("response.completed"), (event) => event.response.output.pop()),
    ],
    [
      "has no usage",
      responsesText().events,
      changed(is("response.completed"), (event) => {
        event.response.usage = null;
      }),
    ],
    [
      "names another item",
      responsesText().events,
      changed(is("response.output_text.delta"), (event) => {
        event.item_id = "msg_other";
      }),
    ],
  ])("responses: %s", (rule, events, spoil) => {
    expect(brokenRules(RESPONSES, spoilt(events, spoil)).join("\n")).toContain(rule);
  });

  test.each<[string, readonly SseEvent[], Spoil]>([
    ["before message_start", messagesText().events, without(is("message_start"))],
    ["a second message_start", messagesText().events, twice(is("message_start"))],
    ["begins inside another", messagesThinking().events, without(is("content_block_stop"))],
    ["outside its block", messagesText().events, without(is("content_block_start"))],
    [
      "block 0 has index 1",
      messagesText().events,
      changed(is("content_block_start"), (event) => {
        event.index = 1;
      }),
    ],
    [
      "text_delta in a thinking",
      messagesThinking().events,
      changed(is("content_block_delta"), (event) => {
        event.delta = { type: "text_delta", text: "x" };
      }),
    ],
    [
      "without a signature",
      messagesThinking().events,
      without((event) => event.delta?.type === "signature_delta"),
    ],
    [
      "after the signature",
      messagesThinking().events,
      twice((event) => event.delta?.type === "signature_delta"),
    ],
    ["message_delta inside a block", messagesText().events, without(is("content_block_stop"))],
    ["message_stop without message_delta", messagesText().events, without(is("message_delta"))],
    ["no message_stop", messagesText().events, without(is("message_stop"))],
    ["after the end", messagesText().events, twice(is("message_stop"))],
    [
      "end_turn after a tool_use",
      messagesToolUse().events,
      changed(is("message_delta"), (event) => {
        event.delta.stop_reason = "end_turn";
      }),
    ],
  ])("messages: %s", (rule, events, spoil) => {
    expect(brokenRules(MESSAGES, spoilt(events, spoil)).join("\n")).toContain(rule);
  });
});
