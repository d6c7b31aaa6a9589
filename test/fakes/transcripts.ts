/**
 * What hosts say, in the providers' documented wire form: OpenAI's "Streaming" of chat completions and of
 * responses, and Anthropic's "Streaming Messages". Each answer comes as `events`, for a stream, and as
 * `whole`, for a request without one; both tell the same story. Made to be cut, reordered and spoilt:
 * `sseText(answer.events)` gives the bytes.
 *
 *     chatText(["Hel", "lo"]), chatToolCall(), chatReasoning()
 *     responsesText(…), responsesToolCall(), responsesReasoning()
 *     messagesText(…), messagesToolUse(), messagesThinking()
 *     chatError(), responsesError(), messagesError()            events that end a stream badly
 */
export interface SseEvent {
  readonly event?: string;
  readonly data: string;
}

export interface HostAnswer {
  readonly events: readonly SseEvent[];
  readonly whole: Record<string, unknown>;
}

export interface AnswerOptions {
  readonly model?: string;
  /** Prompt tokens, all of them; of these `cached` were read from the host's cache. */
  readonly input?: number;
  readonly cached?: number;
  /**
   * Written to the cache; Anthropic reports it next to its `input_tokens`, OpenAI among the prompt's details.
   */
  readonly cacheWrite?: number;
  /** Output tokens, reasoning among them. */
  readonly output?: number;
  readonly reasoning?: number;
  /** What the host says that the answer cost, in USD, as OpenRouter does on chat. */
  readonly cost?: unknown;
}

export const eventText = ({ event, data }: SseEvent, eol = "\n"): string =>
  `${event === undefined ? "" : `event: ${event}${eol}`}data: ${data}${eol}${eol}`;

export const sseText = (events: readonly SseEvent[], eol = "\n"): string =>
  events.map((event) => eventText(event, eol)).join("");

const TOOL = { name: "get_weather", argumentParts: ['{"city":', '"Oslo"', "}"] } as const;
const TOOL_ARGUMENTS = TOOL.argumentParts.join("");

// Chat completions

const CHAT_ID = "chatcmpl-BqZ3vLx0wQ7n";
const CREATED = 1_763_000_000;

export function chatText(
  words: readonly string[] = ["Hello", " there", "."],
  options: AnswerOptions = {},
): HostAnswer {
  const deltas = words.map((content) => ({ content }));
  const message = { content: words.join("") };
  return chatAnswer([{ content: "", refusal: null }, ...deltas], message, "stop", {
    output: words.length,
    ...options,
  });
}

export function chatToolCall(options: AnswerOptions = {}): HostAnswer {
  const call = { id: "call_9xKpT4", type: "function" };
  const deltas = [
    { content: null, tool_calls: [{ index: 0, ...call, function: { name: TOOL.name, arguments: "" } }] },
    ...TOOL.argumentParts.map((part) => ({ tool_calls: [{ index: 0, function: { arguments: part } }] })),
  ];
  const message = {
    content: null,
    tool_calls: [{ ...call, function: { name: TOOL.name, arguments: TOOL_ARGUMENTS } }],
  };
  return chatAnswer(deltas, message, "tool_calls", { output: 14, ...options });
}

/**
 * Reasoning as DeepSeek, vLLM and others put it on the chat language: `reasoning_content` before the content.
 */
export function chatReasoning(
  thoughts: readonly string[] = ["Let me", " see."],
  words: readonly string[] = ["42"],
  options: AnswerOptions = {},
): HostAnswer {
  const deltas = [
    { content: null, reasoning_content: "" },
    ...thoughts.map((reasoning_content) => ({ content: null, reasoning_content })),
    ...words.map((content) => ({ content, reasoning_content: null })),
  ];
  const message = { content: words.join(""), reasoning_content: thoughts.join("") };
  const output = thoughts.length + words.length;
  return chatAnswer(deltas, message, "stop", { output, reasoning: thoughts.length, ...options });
}

export const chatError = (message = "The server had an error while processing your request."): SseEvent => ({
  data: JSON.stringify({ error: { message, type: "server_error", param: null, code: null } }),
});

const CHAT_DONE: SseEvent = { data: "[DONE]" };

/** The stream has a usage chunk, as when `stream_options.include_usage` was asked for. */
function chatAnswer(
  deltas: readonly object[],
  message: object,
  finishReason: string,
  options: AnswerOptions,
): HostAnswer {
  const usage = chatUsage(options);
  const base = { id: CHAT_ID, created: CREATED, model: options.model ?? "fake-chat-model" };
  const chunk = (choices: object[], use: object | null): SseEvent => ({
    data: JSON.stringify({
      ...base,
      object: "chat.completion.chunk",
      service_tier: "default",
      system_fingerprint: "fp_51e1070cf2",
      choices,
      usage: use,
    }),
  });
  const choice = (delta: object, finish: string | null): object => ({
    index: 0,
    delta,
    logprobs: null,
    finish_reason: finish,
  });
  const events = [
    ...deltas.map((delta, n) =>
      chunk([choice(n === 0 ? { role: "assistant", ...delta } : delta, null)], null),
    ),
    chunk([choice({}, finishReason)], null),
    chunk([], usage),
    CHAT_DONE,
  ];
  const whole = {
    ...base,
    object: "chat.completion",
    choices: [
      {
        index: 0,
        message: { role: "assistant", refusal: null, annotations: [], ...message },
        logprobs: null,
        finish_reason: finishReason,
      },
    ],
    usage,
    service_tier: "default",
    system_fingerprint: "fp_51e1070cf2",
  };
  return { events, whole };
}

function chatUsage({ input = 11, cached = 0, output = 3, reasoning = 0, cost }: AnswerOptions): object {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
    cost,
  };
}

// Responses

const RESPONSE_ID = "resp_68f1c02a9d14";

type ResponsesStep = Readonly<Record<string, unknown>> & { readonly type: string };

export function responsesText(
  words: readonly string[] = ["Hello", " there", "."],
  options: AnswerOptions = {},
): HostAnswer {
  return responsesAnswer([messageItem(words)], { output: words.length, ...options });
}

export function responsesToolCall(options: AnswerOptions = {}): HostAnswer {
  return responsesAnswer([functionCallItem()], { output: 14, ...options });
}

/** A freeform tool, as Codex declares its `apply_patch`. */
export function responsesCustomToolCall(
  input: readonly string[] = ["*** Begin", " Patch"],
  options: AnswerOptions = {},
): HostAnswer {
  return responsesAnswer([customToolCallItem(input)], { output: input.length, ...options });
}

/** A reasoning item with a summary and encrypted content, then the text. */
export function responsesReasoning(
  thoughts: readonly string[] = ["Let me", " see."],
  words: readonly string[] = ["42"],
  options: AnswerOptions = {},
): HostAnswer {
  const output = thoughts.length + words.length;
  return responsesAnswer([reasoningItem(thoughts), messageItem(words)], {
    output,
    reasoning: thoughts.length,
    ...options,
  });
}

/** OpenAI sends both: the bare `error` event, then the failed response. */
export function responsesError(
  message = "The server had an error while processing your request.",
): SseEvent[] {
  const error = { type: "server_error", code: "server_error", message, param: null };
  const response = { ...responseObject({}, "failed", []), error: { code: "server_error", message } };
  return [
    typedEvent({ type: "error", sequence_number: 2, error }),
    typedEvent({ type: "response.failed", sequence_number: 3, response }),
  ];
}

interface OutputItem {
  /**
   * Between `output_item.added` and `output_item.done`; `output_index` and `sequence_number` are put in
   * later.
   */
  readonly steps: readonly ResponsesStep[];
  readonly opened: object;
  readonly done: object;
}

function responsesAnswer(items: readonly OutputItem[], options: AnswerOptions): HostAnswer {
  const whole = {
    ...responseObject(
      options,
      "completed",
      items.map(({ done }) => done),
    ),
    usage: responsesUsage(options),
  };
  const opening = responseObject(options, "in_progress", []);
  const steps: ResponsesStep[] = [
    { type: "response.created", response: opening },
    { type: "response.in_progress", response: opening },
    ...items.flatMap((item, output_index) => [
      { type: "response.output_item.added", output_index, item: item.opened },
      ...item.steps.map((step) => ({ ...step, output_index })),
      { type: "response.output_item.done", output_index, item: item.done },
    ]),
    { type: "response.completed", response: whole },
  ];
  return { events: steps.map((step, sequence_number) => typedEvent({ ...step, sequence_number })), whole };
}

function messageItem(words: readonly string[]): OutputItem {
  const item = { id: "msg_68f1c02b77e0", type: "message", role: "assistant" };
  const at = { item_id: item.id, content_index: 0 };
  const part = (text: string): object => ({ type: "output_text", annotations: [], logprobs: [], text });
  const text = words.join("");
  return {
    opened: { ...item, status: "in_progress", content: [] },
    steps: [
      { type: "response.content_part.added", ...at, part: part("") },
      ...words.map((delta) => ({ type: "response.output_text.delta", ...at, delta, logprobs: [] })),
      { type: "response.output_text.done", ...at, text, logprobs: [] },
      { type: "response.content_part.done", ...at, part: part(text) },
    ],
    done: { ...item, status: "completed", content: [part(text)] },
  };
}

function functionCallItem(): OutputItem {
  const item = { id: "fc_68f1c02c03aa", type: "function_call", call_id: "call_9xKpT4", name: TOOL.name };
  const item_id = item.id;
  return {
    opened: { ...item, status: "in_progress", arguments: "" },
    steps: [
      ...TOOL.argumentParts.map((delta) => ({
        type: "response.function_call_arguments.delta",
        item_id,
        delta,
      })),
      { type: "response.function_call_arguments.done", item_id, arguments: TOOL_ARGUMENTS },
    ],
    done: { ...item, status: "completed", arguments: TOOL_ARGUMENTS },
  };
}

function customToolCallItem(input: readonly string[]): OutputItem {
  const item = {
    id: "ctc_68f1c02d90b1",
    type: "custom_tool_call",
    call_id: "call_7bQwE2",
    name: "apply_patch",
  };
  const item_id = item.id;
  return {
    opened: { ...item, status: "in_progress", input: "" },
    steps: [
      ...input.map((delta) => ({ type: "response.custom_tool_call_input.delta", item_id, delta })),
      { type: "response.custom_tool_call_input.done", item_id, input: input.join("") },
    ],
    done: { ...item, status: "completed", input: input.join("") },
  };
}

function reasoningItem(thoughts: readonly string[]): OutputItem {
  const item = { id: "rs_68f1c02e5c6d", type: "reasoning" };
  const at = { item_id: item.id, summary_index: 0 };
  const part = (text: string): object => ({ type: "summary_text", text });
  const text = thoughts.join("");
  return {
    opened: { ...item, summary: [], encrypted_content: "gAAAAABo-opened" },
    steps: [
      { type: "response.reasoning_summary_part.added", ...at, part: part("") },
      ...thoughts.map((delta) => ({ type: "response.reasoning_summary_text.delta", ...at, delta })),
      { type: "response.reasoning_summary_text.done", ...at, text },
      { type: "response.reasoning_summary_part.done", ...at, part: part(text) },
    ],
    done: { ...item, summary: [part(text)], encrypted_content: "gAAAAABo-done" },
  };
}

function responseObject(
  options: AnswerOptions,
  status: string,
  output: readonly object[],
): Record<string, unknown> {
  return {
    id: RESPONSE_ID,
    object: "response",
    created_at: CREATED,
    status,
    background: false,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    max_tool_calls: null,
    model: options.model ?? "fake-responses-model",
    output,
    parallel_tool_calls: true,
    previous_response_id: null,
    prompt_cache_key: null,
    reasoning: { effort: null, summary: null },
    safety_identifier: null,
    service_tier: "default",
    store: false,
    temperature: 1,
    text: { format: { type: "text" }, verbosity: "medium" },
    tool_choice: "auto",
    tools: [],
    top_logprobs: 0,
    top_p: 1,
    truncation: "disabled",
    usage: null,
    user: null,
    metadata: {},
  };
}

function responsesUsage(options: AnswerOptions): object {
  const { input = 11, cached = 0, cacheWrite = 0, output = 3, reasoning = 0 } = options;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  };
}

// Messages

export function messagesText(
  words: readonly string[] = ["Hello", " there", "."],
  options: AnswerOptions = {},
): HostAnswer {
  return messagesAnswer([textBlock(words)], "end_turn", { output: words.length, ...options });
}

export function messagesToolUse(options: AnswerOptions = {}): HostAnswer {
  return messagesAnswer([toolUseBlock()], "tool_use", { output: 14, ...options });
}

/** A thinking block with its signature, then the text. */
export function messagesThinking(
  thoughts: readonly string[] = ["Let me", " see."],
  words: readonly string[] = ["42"],
  options: AnswerOptions = {},
): HostAnswer {
  const output = thoughts.length + words.length;
  return messagesAnswer([thinkingBlock(thoughts), textBlock(words)], "end_turn", { output, ...options });
}

export const messagesError = (message = "Overloaded", type = "overloaded_error"): SseEvent =>
  typedEvent({ type: "error", error: { type, message } });

interface ContentBlock {
  readonly opened: object;
  readonly deltas: readonly object[];
  readonly done: object;
}

function messagesAnswer(
  blocks: readonly ContentBlock[],
  stopReason: string,
  options: AnswerOptions,
): HostAnswer {
  const base = {
    id: "msg_01F8MECHZX3TBDSZ7XR",
    type: "message",
    role: "assistant",
    model: options.model ?? "fake-messages-model",
  };
  const usage = messagesUsage(options);
  const events = [
    {
      type: "message_start",
      message: {
        ...base,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { ...usage, output_tokens: 1, service_tier: "standard" },
      },
    },
    ...blocks.flatMap(({ opened, deltas }, index) => [
      { type: "content_block_start", index, content_block: opened },
      ...(index === 0 ? [{ type: "ping" }] : []),
      ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index },
    ]),
    { type: "message_delta", delta: { stop_reason: stopReason, stop_sequence: null }, usage },
    { type: "message_stop" },
  ];
  const whole = {
    ...base,
    content: blocks.map(({ done }) => done),
    stop_reason: stopReason,
    stop_sequence: null,
    usage: { ...usage, service_tier: "standard" },
  };
  return { events: events.map(typedEvent), whole };
}

const textBlock = (words: readonly string[]): ContentBlock => ({
  opened: { type: "text", text: "" },
  deltas: words.map((text) => ({ type: "text_delta", text })),
  done: { type: "text", text: words.join("") },
});

function toolUseBlock(): ContentBlock {
  const block = {
    type: "tool_use",
    id: "toolu_01T1x1fJ34qAmk2t",
    name: TOOL.name,
    caller: { type: "direct" },
  };
  return {
    opened: { ...block, input: {} },
    deltas: ["", ...TOOL.argumentParts].map((partial_json) => ({ type: "input_json_delta", partial_json })),
    done: { ...block, input: JSON.parse(TOOL_ARGUMENTS) },
  };
}

function thinkingBlock(thoughts: readonly string[]): ContentBlock {
  const signature = "EqQBCgIYAhIM1gbcDa9GJwZA2b3h";
  return {
    opened: { type: "thinking", thinking: "", signature: "" },
    deltas: [
      ...thoughts.map((thinking) => ({ type: "thinking_delta", thinking })),
      { type: "signature_delta", signature },
    ],
    done: { type: "thinking", thinking: thoughts.join(""), signature },
  };
}

/** Anthropic's `input_tokens` leaves out what the cache gave or took. */
function messagesUsage({ input = 11, cached = 0, cacheWrite = 0, output = 3 }: AnswerOptions): object {
  return {
    input_tokens: input - cached - cacheWrite,
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cached,
    output_tokens: output,
  };
}

function typedEvent(value: Readonly<Record<string, unknown>> & { readonly type: string }): SseEvent {
  return { event: value.type, data: JSON.stringify(value) };
}
