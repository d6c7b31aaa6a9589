import type { SurfaceName } from "../../../src/catalog/catalog.ts";
import { named, type Story, unnamed } from "./transcript.ts";

/**
 * Hosts that do what no document says, and yet was seen. Some can be understood all the same; the others are
 * `broken`, and a client that received half an answer must learn so.
 */
export interface Sickness {
  readonly host: SurfaceName;
  readonly stream: string;
  /** What the fault says; null where the answer is whole. */
  readonly broken: RegExp | null;
  readonly story: Omit<Story, "usage">;
}

const DONE = "data: [DONE]";
const chunk = (delta: object, finish: string | null = null, more: object = {}) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1_763_000_000,
  model: "m",
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
});
const role = chunk({ role: "assistant", content: "" });
const stop = chunk({}, "stop");
const call = (index: number | undefined, id: string | undefined, name: string | undefined, words: string) =>
  chunk({
    tool_calls: [
      {
        ...(index === undefined ? {} : { index }),
        ...(id === undefined ? {} : { id, type: "function" }),
        function: { ...(name === undefined ? {} : { name }), arguments: words },
      },
    ],
  });
const chat = (
  events: readonly (object | string)[],
  story: Omit<Story, "usage">,
  broken: RegExp | null = null,
): Sickness => ({ host: "chat.completions", stream: unnamed(events), broken, story });

const says = (content: string) => chunk({ content });
const halfAnswer = [role, says("Hel")];
const HALF_ANSWER = { text: "Hel", end: "end" } as const;
const HELLO_ANSWER = { text: "Hello", end: "end" } as const;
const stopForCalls = chunk({}, "tool_calls");

const OSLO = { name: "get_weather", input: '{"city":"Oslo"}' };
const ROME = { name: "get_weather", input: '{"city":"Rome"}' };

const SICK_CHAT = {
  "an error in the middle": chat(
    [...halfAnswer, { error: { message: "GPU fell off the bus", code: 500 } }],
    HALF_ANSWER,
    /GPU fell off/,
  ),
  "an error that ends in [DONE]": chat(
    [...halfAnswer, { error: { message: "Overloaded" } }, DONE],
    HALF_ANSWER,
    /Overloaded/,
  ),
  "an error that is the chunk": chat(
    [
      ...halfAnswer,
      { object: "error", message: "EngineCore died", type: "InternalServerError", param: null, code: 500 },
      DONE,
    ],
    HALF_ANSWER,
    /EngineCore died/,
  ),
  "Groq's reason for stopping early": chat(
    [
      ...halfAnswer,
      chunk({ content: "lo" }, null, { x_groq: { id: "req_1", error: "over_capacity" } }),
      stop,
      DONE,
    ],
    HALF_ANSWER,
    /over_capacity/,
  ),
  "a stream that is cut": chat(halfAnswer, HALF_ANSWER, /without its end/),
  "a finish_reason that is an error": chat([...halfAnswer, chunk({}, "error"), DONE], HALF_ANSWER, /error/),
  "no [DONE]": chat([role, says("Hello"), stop], HELLO_ANSWER),
  "the role in every chunk": chat(
    [
      role,
      chunk({ role: "assistant", content: "Hel" }),
      chunk({ role: "assistant", content: "lo" }),
      stop,
      DONE,
    ],
    HELLO_ANSWER,
  ),
  "no usage": chat([role, says("Hello"), stop, DONE], HELLO_ANSWER),
  "no finish_reason": chat([role, says("Hello"), DONE], HELLO_ANSWER),
  "no finish_reason behind a call": chat([role, call(0, "call_a", "get_weather", OSLO.input), DONE], {
    calls: [OSLO],
    end: "tools",
  }),
  "usage that cannot be true": chat(
    [
      role,
      says("Hello"),
      stop,
      { ...role, choices: [], usage: { prompt_tokens: -5, completion_tokens: 1e20 } },
      DONE,
    ],
    HELLO_ANSWER,
  ),
  "an empty answer": chat([role, stop, DONE], { end: "end" }),
  "everything that is not said is null": chat(
    [
      chunk({
        role: "assistant",
        content: null,
        refusal: null,
        tool_calls: null,
        function_call: null,
        reasoning: null,
      }),
      chunk({
        content: "Hello",
        refusal: null,
        tool_calls: null,
        function_call: null,
        reasoning_content: null,
      }),
      stop,
      DONE,
    ],
    HELLO_ANSWER,
  ),
  "thoughts that are repeated whole with their signature": chat(
    [
      role,
      chunk({ reasoning_content: "They want" }),
      chunk({ reasoning_content: " a number." }),
      chunk({
        reasoning_details: [{ type: "reasoning.text", text: "They want a number.", signature: "EqQB" }],
      }),
      says("42"),
      stop,
      DONE,
    ],
    { reasoning: "They want a number.", text: "42", end: "end" },
  ),
  "lists of calls that are empty": chat(
    [
      chunk({ role: "assistant", content: "", tool_calls: [] }),
      chunk({ content: "Hello", tool_calls: [] }),
      stop,
      DONE,
    ],
    HELLO_ANSWER,
  ),
  "two calls, sent in turns": chat(
    [
      role,
      call(0, "call_a", "get_weather", ""),
      call(1, "call_b", "get_weather", ""),
      call(0, undefined, undefined, '{"city":'),
      call(1, undefined, undefined, '{"city":'),
      call(0, undefined, undefined, '"Oslo"}'),
      call(1, undefined, undefined, '"Rome"}'),
      stopForCalls,
      DONE,
    ],
    { calls: [OSLO, ROME], end: "tools" },
  ),
  "two calls, both at index 0": chat(
    [
      role,
      call(0, "call_a", "get_weather", OSLO.input),
      call(0, "call_b", "get_weather", ROME.input),
      stopForCalls,
      DONE,
    ],
    { calls: [OSLO, ROME], end: "tools" },
  ),
  "two calls, both at index 0, sent in turns by their ids": chat(
    [
      role,
      call(0, "call_a", "get_weather", '{"city":'),
      call(0, "call_b", "get_weather", '{"city":'),
      call(0, "call_a", undefined, '"Oslo"}'),
      call(0, "call_b", undefined, '"Rome"}'),
      stopForCalls,
      DONE,
    ],
    { calls: [OSLO, ROME], end: "tools" },
  ),
  "two calls, both at index 0, whose pieces have no id": chat(
    [
      role,
      call(0, "call_a", "get_weather", ""),
      call(0, "", undefined, OSLO.input),
      call(0, "call_b", "get_weather", ""),
      call(0, undefined, undefined, ROME.input),
      stopForCalls,
      DONE,
    ],
    { calls: [OSLO, ROME], end: "tools" },
  ),
  "a call whose pieces have another id than its beginning": chat(
    [
      role,
      call(0, "call_a", "get_weather", ""),
      call(0, "call_b", undefined, '{"city":'),
      call(0, "call_b", undefined, '"Oslo"}'),
      stopForCalls,
      DONE,
    ],
    { calls: [OSLO], end: "tools" },
  ),
  "a call without an index, in pieces": chat(
    [
      role,
      call(undefined, "call_a", "get_weather", '{"city":'),
      call(undefined, undefined, undefined, '"Oslo"}'),
      stop,
      DONE,
    ],
    { calls: [OSLO], end: "tools" },
  ),
  "a call whose id and name are repeated": chat(
    [
      role,
      call(0, "call_a", "get_weather", '{"city":'),
      call(0, "call_a", "get_weather", '"Oslo"}'),
      stopForCalls,
      DONE,
    ],
    { calls: [OSLO], end: "tools" },
  ),
  "a call with an empty id": chat([role, call(0, "", "get_weather", OSLO.input), stopForCalls, DONE], {
    calls: [OSLO],
    end: "tools",
  }),
  "a call whose arguments are an object": chat(
    [
      role,
      chunk({
        tool_calls: [
          {
            index: 0,
            id: "call_a",
            type: "function",
            function: { name: "get_weather", arguments: { city: "Oslo" } },
          },
        ],
      }),
      stopForCalls,
      DONE,
    ],
    { calls: [OSLO], end: "tools" },
  ),
  "words behind a call": chat(
    [role, call(0, "call_a", "get_weather", OSLO.input), says("Wait."), stopForCalls, DONE],
    { text: "Wait.", calls: [OSLO], end: "tools" },
  ),
  "data over two lines, comments and fields that nobody knows": chat(
    [
      ": hello\nid: 7\nretry: 100",
      role,
      'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1763000000,"model":"m","choices":\ndata: [{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}',
      stop,
      DONE,
    ],
    HELLO_ANSWER,
  ),
} satisfies Record<string, Sickness>;

const RESPONSE = {
  id: "resp_1",
  object: "response",
  created_at: 1_763_000_000,
  model: "m",
  status: "in_progress",
  output: [],
  error: null,
  incomplete_details: null,
};
const USED = {
  input_tokens: 5,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 3,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 8,
};
const MESSAGE = { id: "msg_1", type: "message", role: "assistant", status: "completed" };
const part = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] });
const responses = (
  events: readonly ({ readonly type: string } & Readonly<Record<string, unknown>>)[],
  story: Omit<Story, "usage">,
  broken: RegExp | null = null,
): Sickness => ({
  host: "responses",
  stream: named(
    [created, { ...created, type: "response.in_progress" }, ...events].map((event, sequence_number) => ({
      ...event,
      sequence_number,
    })),
  ),
  broken,
  story,
});
const then = (sickness: Sickness, more: string): Sickness => ({
  ...sickness,
  stream: sickness.stream + more,
});
const UNTYPED = unnamed([{ error: { message: "GPU fell off the bus", code: 500 } }, DONE]);
const created = { type: "response.created", response: RESPONSE };
const completed = (output: object[]) => ({
  type: "response.completed",
  response: { ...RESPONSE, status: "completed", output, usage: USED },
});
const added = (output_index: number | undefined, item: object) => ({
  type: "response.output_item.added",
  output_index,
  item,
});
const opened = (output_index: number) => ({
  type: "response.content_part.added",
  output_index,
  item_id: "msg_1",
  content_index: 0,
  part: part(""),
});
const done = (output_index: number | undefined, item: object) => ({
  type: "response.output_item.done",
  output_index,
  item,
});
const delta = (type: string, output_index: number | undefined, item_id: string, delta: string) => ({
  type: `response.${type}.delta`,
  output_index,
  item_id,
  content_index: 0,
  delta,
});
const started = added(0, { ...MESSAGE, status: "in_progress", content: [] });
const halfMessage = [started, opened(0), delta("output_text", 0, "msg_1", "Hel")];
const WHOLE = { ...MESSAGE, content: [part("Hello")] };
const called = (id: string, words: string) => ({
  id: `fc_${id}`,
  type: "function_call",
  status: "completed",
  call_id: `call_${id}`,
  name: "get_weather",
  arguments: words,
});

const SICK_RESPONSES = {
  "a failed response": responses(
    [
      ...halfMessage,
      {
        type: "response.failed",
        response: { ...RESPONSE, status: "failed", error: { code: "server_error", message: "It broke." } },
      },
    ],
    HALF_ANSWER,
    /It broke/,
  ),
  "a bare error": responses(
    [{ type: "error", code: "server_error", message: "It broke.", param: null }],
    { end: "end" },
    /It broke/,
  ),
  "an error without a type, as hosts send it that speak chat first": then(
    responses([...halfMessage], HALF_ANSWER, /GPU fell off/),
    UNTYPED,
  ),
  "a stream that is cut": responses([...halfMessage], HALF_ANSWER, /without its end/),
  "items that are sent only when they are done": responses(
    [done(0, WHOLE), done(1, called("a", OSLO.input)), completed([WHOLE, called("a", OSLO.input)])],
    { text: "Hello", calls: [OSLO], end: "tools" },
  ),
  "two calls, sent in turns": responses(
    [
      added(0, { ...called("a", ""), status: "in_progress" }),
      added(1, { ...called("b", ""), status: "in_progress" }),
      delta("function_call_arguments", 0, "fc_a", '{"city":'),
      delta("function_call_arguments", 1, "fc_b", '{"city":'),
      delta("function_call_arguments", 1, "fc_b", '"Rome"}'),
      done(1, called("b", ROME.input)),
      delta("function_call_arguments", 0, "fc_a", '"Oslo"}'),
      done(0, called("a", OSLO.input)),
      completed([called("a", OSLO.input), called("b", ROME.input)]),
    ],
    { calls: [OSLO, ROME], end: "tools" },
  ),
  "items whose ends do not say which": responses(
    [
      ...halfMessage,
      delta("output_text", 0, "msg_1", "lo"),
      done(undefined, WHOLE),
      added(1, { ...called("a", ""), status: "in_progress" }),
      delta("function_call_arguments", 1, "fc_a", OSLO.input),
      done(undefined, called("a", OSLO.input)),
      completed([WHOLE, called("a", OSLO.input)]),
    ],
    { text: "Hello", calls: [OSLO], end: "tools" },
  ),
  "two calls whose ends do not say which": responses(
    [
      added(0, { ...called("a", ""), status: "in_progress" }),
      added(1, { ...called("b", ""), status: "in_progress" }),
      delta("function_call_arguments", 0, "fc_a", OSLO.input),
      done(undefined, called("a", OSLO.input)),
      delta("function_call_arguments", 1, "fc_b", ROME.input),
      done(undefined, called("b", ROME.input)),
      completed([called("a", OSLO.input), called("b", ROME.input)]),
    ],
    { calls: [OSLO, ROME], end: "tools" },
  ),
  "items without any index": responses(
    [
      added(undefined, { ...MESSAGE, status: "in_progress", content: [] }),
      delta("output_text", undefined, "msg_1", "Hello"),
      done(undefined, WHOLE),
      added(undefined, { ...called("a", ""), status: "in_progress" }),
      delta("function_call_arguments", undefined, "fc_a", OSLO.input),
      done(undefined, called("a", OSLO.input)),
      completed([WHOLE, called("a", OSLO.input)]),
    ],
    { text: "Hello", calls: [OSLO], end: "tools" },
  ),
  "events that nobody knows": responses(
    [
      { type: "response.rate_limits.updated", remaining: 5 },
      started,
      delta("output_text", 0, "msg_1", "Hello"),
      done(0, WHOLE),
      completed([WHOLE]),
    ],
    HELLO_ANSWER,
  ),
  "no word of its beginning": {
    ...responses([], HELLO_ANSWER),
    stream: named([
      started,
      opened(0),
      delta("output_text", 0, "msg_1", "Hello"),
      done(0, WHOLE),
      completed([WHOLE]),
    ]),
  },
} satisfies Record<string, Sickness>;

const messages = (
  events: readonly ({ readonly type: string } & Readonly<Record<string, unknown>>)[],
  story: Omit<Story, "usage">,
  broken: RegExp | null = null,
): Sickness => ({ host: "messages", stream: named(events), broken, story });
const start = {
  type: "message_start",
  message: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    content: [],
    model: "m",
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 5, output_tokens: 1 },
  },
};
const block = (index: number, content_block: object) => ({
  type: "content_block_start",
  index,
  content_block,
});
const words = (index: number, text: string) => ({
  type: "content_block_delta",
  index,
  delta: { type: "text_delta", text },
});
const closed = (index: number) => ({ type: "content_block_stop", index });
const text = { type: "text", text: "" };
const ended = (stop_reason: string) => ({
  type: "message_delta",
  delta: { stop_reason, stop_sequence: null },
  usage: { output_tokens: 3 },
});
const stopped = { type: "message_stop" };

const halfText = [start, block(0, text), words(0, "Hel")];
const endOfTurn = [closed(0), ended("end_turn"), stopped];
const toolUse = { type: "tool_use", id: "toolu_1", name: "get_weather", input: { city: "Oslo" } };

const SICK_MESSAGES = {
  "overloaded in the middle": messages(
    [...halfText, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }],
    HALF_ANSWER,
    /Overloaded/,
  ),
  "an error without a type, as hosts send it that speak chat first": then(
    messages(halfText, HALF_ANSWER, /GPU fell off/),
    UNTYPED,
  ),
  "a stream that is cut": messages(halfText, HALF_ANSWER, /without its end/),
  "its beginning twice": messages(
    [start, start, block(0, text), words(0, "Hello"), ...endOfTurn],
    HELLO_ANSWER,
  ),
  "a block that is never closed": messages(
    [start, block(0, text), words(0, "Hello"), ended("end_turn"), stopped],
    HELLO_ANSWER,
  ),
  "a block that is never closed, and no reason to stop": messages(
    [start, block(0, text), words(0, "Hello"), stopped],
    HELLO_ANSWER,
  ),
  "no usage but at its beginning": messages(
    [
      start,
      block(0, text),
      words(0, "Hello"),
      closed(0),
      { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null } },
      stopped,
    ],
    HELLO_ANSWER,
  ),
  "a turn that ends with a call": messages(
    [start, block(0, toolUse), closed(0), ended("end_turn"), stopped],
    { calls: [OSLO], end: "tools" },
  ),
  "no word of its beginning": messages([block(0, text), words(0, "Hello"), ...endOfTurn], HELLO_ANSWER),
  "no beginning and no content": messages([ended("end_turn"), stopped], { end: "end" }),
  "no content at all": messages([start, ended("end_turn"), stopped], { end: "end" }),
  "a call that comes whole with its start": messages(
    [start, block(0, toolUse), closed(0), ended("tool_use"), stopped],
    { calls: [OSLO], end: "tools" },
  ),
  "text that begins with its block": messages(
    [start, block(0, { type: "text", text: "Hel" }), words(0, "lo"), ...endOfTurn],
    HELLO_ANSWER,
  ),
} satisfies Record<string, Sickness>;

export const SICK: readonly (readonly [string, Sickness])[] = [
  ...Object.entries(SICK_CHAT),
  ...Object.entries(SICK_RESPONSES),
  ...Object.entries(SICK_MESSAGES),
].map(([name, one]) => [`${one.host}: ${name}`, one] as const);
