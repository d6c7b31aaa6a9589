import { named, type Story, type Transcript, used } from "./transcript.ts";

/** OpenAI's responses: platform.openai.com, API reference, "Responses" and "Streaming events". */
const CREATED = 1_763_000_000;

interface Step {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** An item as it is added, its deltas, and as it is when it is done. */
interface Item {
  readonly added: object;
  readonly steps: readonly Step[];
  readonly done: object;
}

interface Turn {
  readonly from: string;
  readonly items: readonly Item[];
  readonly story: Omit<Story, "usage"> & Partial<Pick<Story, "usage">>;
  readonly usage?: object;
  readonly incomplete?: "max_output_tokens" | "content_filter";
}

function openai({ from, items, story, usage = tokens(20, 9), incomplete }: Turn): Transcript {
  const status = incomplete === undefined ? "completed" : "incomplete";
  const opening = response("in_progress", [], null, null);
  const whole = response(
    status,
    items.map(({ done }) => done),
    usage,
    incomplete === undefined ? null : { reason: incomplete },
  );
  const steps: Step[] = [
    { type: "response.created", response: opening },
    { type: "response.in_progress", response: opening },
    ...items.flatMap(({ added, steps, done }, output_index) => [
      { type: "response.output_item.added", output_index, item: added },
      ...steps.map((step) => ({ ...step, output_index })),
      { type: "response.output_item.done", output_index, item: done },
    ]),
    { type: `response.${status}`, response: whole },
  ];
  const stream = named(steps.map((step, sequence_number) => ({ ...step, sequence_number })));
  return { from, host: "responses", stream, whole, story: { usage: used(20, 9), ...story } };
}

const tokens = (input: number, output: number, cached = 0, written = 0, reasoning = 0) => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: reasoning },
  total_tokens: input + output,
});

const response = (status: string, output: object[], usage: object | null, incomplete: object | null) => ({
  id: "resp_0c2e8a3f9a1d6c7f00690f1b",
  object: "response",
  created_at: CREATED,
  status,
  background: false,
  completed_at: status === "completed" ? CREATED + 2 : null,
  error: null,
  incomplete_details: incomplete,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  model: "gpt-5.1-2025-11-13",
  output,
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  prompt_cache_retention: null,
  reasoning: { effort: "medium", summary: "detailed" },
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
  usage,
  user: null,
  metadata: {},
});

function message(
  id: string,
  words: readonly string[],
  status = "completed",
  logprobs: readonly object[] = [],
): Item {
  const at = { item_id: id, content_index: 0 };
  const text = words.join("");
  const part = (text: string, logprobs: readonly object[]) => ({
    type: "output_text",
    annotations: [],
    logprobs,
    text,
  });
  const item = { id, type: "message", role: "assistant" };
  return {
    added: { ...item, status: "in_progress", content: [] },
    steps: [
      { type: "response.content_part.added", ...at, part: part("", []) },
      ...words.map((delta, n) => ({
        type: "response.output_text.delta",
        ...at,
        delta,
        logprobs: logprobs[n] === undefined ? [] : [logprobs[n]],
        obfuscation: "q7Ze",
      })),
      { type: "response.output_text.done", ...at, text, logprobs },
      { type: "response.content_part.done", ...at, part: part(text, logprobs) },
    ],
    done: { ...item, status, content: [part(text, logprobs)] },
  };
}

function refusal(id: string, words: readonly string[]): Item {
  const at = { item_id: id, content_index: 0 };
  const part = (refusal: string) => ({ type: "refusal", refusal });
  const item = { id, type: "message", role: "assistant" };
  return {
    added: { ...item, status: "in_progress", content: [] },
    steps: [
      { type: "response.content_part.added", ...at, part: part("") },
      ...words.map((delta) => ({ type: "response.refusal.delta", ...at, delta })),
      { type: "response.refusal.done", ...at, refusal: words.join("") },
      { type: "response.content_part.done", ...at, part: part(words.join("")) },
    ],
    done: { ...item, status: "completed", content: [part(words.join(""))] },
  };
}

function call(id: string, callId: string, name: string, words: readonly string[]): Item {
  const item = { id, type: "function_call", call_id: callId, name };
  const at = { item_id: id };
  return {
    added: { ...item, status: "in_progress", arguments: "" },
    steps: [
      ...words.map((delta) => ({
        type: "response.function_call_arguments.delta",
        ...at,
        delta,
        obfuscation: "Kd",
      })),
      { type: "response.function_call_arguments.done", ...at, name, arguments: words.join("") },
    ],
    done: { ...item, status: "completed", arguments: words.join("") },
  };
}

function customCall(id: string, callId: string, name: string, words: readonly string[]): Item {
  const item = { id, type: "custom_tool_call", call_id: callId, name };
  const at = { item_id: id };
  return {
    added: { ...item, status: "in_progress", input: "" },
    steps: [
      ...words.map((delta) => ({ type: "response.custom_tool_call_input.delta", ...at, delta })),
      { type: "response.custom_tool_call_input.done", ...at, input: words.join("") },
    ],
    done: { ...item, status: "completed", input: words.join("") },
  };
}

/**
 * Thoughts in paragraphs, each a part of the summary; the encrypted ones are others when the item is done.
 */
function reasoning(id: string, paragraphs: readonly (readonly string[])[]): Item {
  const item = { id, type: "reasoning" };
  const part = (text: string) => ({ type: "summary_text", text });
  return {
    added: { ...item, summary: [], encrypted_content: "gAAAAABpDxsB" },
    steps: paragraphs.flatMap((words, summary_index) => {
      const at = { item_id: id, summary_index };
      const text = words.join("");
      return [
        { type: "response.reasoning_summary_part.added", ...at, part: part("") },
        ...words.map((delta) => ({
          type: "response.reasoning_summary_text.delta",
          ...at,
          delta,
          obfuscation: "z",
        })),
        { type: "response.reasoning_summary_text.done", ...at, text },
        { type: "response.reasoning_summary_part.done", ...at, part: part(text) },
      ];
    }),
    done: {
      ...item,
      summary: paragraphs.map((words) => part(words.join(""))),
      encrypted_content: "gAAAAABpDxsDaUg",
    },
  };
}

export const OPENAI_RESPONSES = {
  "text, most of its prompt from the cache": openai({
    from: "API reference, `response.output_text.delta`; guide “Prompt caching”",
    items: [message("msg_0c2e8a3f9a1d6c7f01", ["Grüße", " aus", " Oslo 🌍."])],
    usage: tokens(726, 300, 512, 128),
    story: {
      text: "Grüße aus Oslo 🌍.",
      end: "end",
      usage: used(86, 300, { cacheRead: 512, cacheWrite: 128 }),
    },
  }),
  "thoughts in two paragraphs, words, two calls at once": openai({
    from: "guides “Reasoning models” (summaries, encrypted items) and “Function calling”",
    items: [
      reasoning("rs_0c2e8a3f9a1d6c7f02", [["**Looking up", " weather**"], ["**Comparing**"]]),
      message("msg_0c2e8a3f9a1d6c7f03", ["Let me", " look."]),
      call("fc_0c2e8a3f9a1d6c7f04", "call_DdmO9pD3xa9XTPNJ", "get_weather", ['{"city":', '"Paris"}']),
      call("fc_0c2e8a3f9a1d6c7f05", "call_wKpPBg2vG5aEqLhI", "get_weather", ['{"city":"Bogotá"}']),
    ],
    usage: tokens(120, 90, 0, 0, 64),
    story: {
      reasoning: "**Looking up weather**\n\n**Comparing**",
      text: "Let me look.",
      calls: [
        { name: "get_weather", input: '{"city":"Paris"}' },
        { name: "get_weather", input: '{"city":"Bogotá"}' },
      ],
      end: "tools",
      usage: used(120, 90, { reasoning: 64 }),
    },
  }),
  "thoughts that are encrypted only": openai({
    from: 'guide “Reasoning models”, `include: ["reasoning.encrypted_content"]`',
    items: [reasoning("rs_0c2e8a3f9a1d6c7f06", []), message("msg_0c2e8a3f9a1d6c7f07", ["42"])],
    usage: tokens(20, 9, 0, 0, 8),
    story: { text: "42", end: "end", usage: used(20, 9, { reasoning: 8 }) },
  }),
  "an answer in JSON": openai({
    from: "guide “Structured outputs”",
    items: [message("msg_0c2e8a3f9a1d6c7f13", ['{"city":', '"Oslo"}'])],
    story: { text: '{"city":"Oslo"}', end: "end" },
  }),
  "a refusal": openai({
    from: "API reference, `response.refusal.delta`",
    items: [refusal("msg_0c2e8a3f9a1d6c7f08", ["I'm sorry, I cannot", " assist with that."])],
    story: { refusal: "I'm sorry, I cannot assist with that.", end: "end" },
  }),
  "an answer that is too long": openai({
    from: "API reference, `response.incomplete`",
    items: [message("msg_0c2e8a3f9a1d6c7f09", ["Once upon", " a"], "incomplete")],
    incomplete: "max_output_tokens",
    story: { text: "Once upon a", end: "length" },
  }),
  "an answer that was filtered": openai({
    from: "API reference, `incomplete_details`",
    items: [message("msg_0c2e8a3f9a1d6c7f10", ["The recipe"], "incomplete")],
    incomplete: "content_filter",
    story: { text: "The recipe", end: "filter" },
  }),
  "a freeform call": openai({
    from: "guide “Function calling”, “Custom tools”",
    items: [customCall("ctc_0c2e8a3f9a1d6c7f11", "call_cU5t0m", "apply_patch", ["*** Begin", ' "Patch"\n'])],
    story: { calls: [{ name: "apply_patch", input: '*** Begin "Patch"\n', custom: true }], end: "tools" },
  }),
  "text with the probability of each token": openai({
    from: 'API reference, `include: ["message.output_text.logprobs"]`',
    items: [
      message(
        "msg_0c2e8a3f9a1d6c7f12",
        ["Hello", "!"],
        "completed",
        ["Hello", "!"].map((token) => ({
          token,
          logprob: -0.25,
          bytes: [...Buffer.from(token)],
          top_logprobs: [{ token, logprob: -0.25, bytes: [...Buffer.from(token)] }],
        })),
      ),
    ],
    story: { text: "Hello!", end: "end" },
  }),
} satisfies Record<string, Transcript>;
