import { named, type Story, type Transcript, used } from "./transcript.ts";

/**
 * Anthropic's messages: docs.anthropic.com, "Messages", "Streaming Messages" and the guides named next to
 * each.
 */
interface Block {
  readonly start: object;
  readonly deltas: readonly object[];
  readonly done: object;
}

interface Turn {
  readonly from: string;
  readonly blocks: readonly Block[];
  readonly reason: string;
  readonly sequence?: string;
  readonly details?: object;
  /** Input tokens outside the cache, read from it, written to it, output, thoughts. */
  readonly tokens?: readonly [number, number, number, number, number];
  readonly story: Omit<Story, "usage">;
}

function anthropic({
  from,
  blocks,
  reason,
  sequence,
  details,
  tokens = [20, 0, 0, 9, 0],
  story,
}: Turn): Transcript {
  const [input, cacheRead, cacheWrite, output, reasoning] = tokens;
  const cumulative = {
    input_tokens: input,
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    output_tokens: output,
    ...(reasoning === 0 ? {} : { output_tokens_details: { thinking_tokens: reasoning } }),
  };
  const usage = {
    ...cumulative,
    cache_creation: { ephemeral_5m_input_tokens: cacheWrite, ephemeral_1h_input_tokens: 0 },
    service_tier: "standard",
    inference_geo: "global",
  };
  const base = {
    id: "msg_01XFDUDYJgAACzvnptvVoYEL",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-4-5-20250929",
  };
  const stop = {
    stop_reason: reason,
    stop_sequence: sequence ?? null,
    ...(details === undefined ? {} : { stop_details: details }),
  };
  const start = {
    ...base,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { ...usage, output_tokens: 1 },
  };
  const stream = named([
    { type: "message_start", message: start },
    { type: "ping" },
    ...blocks.flatMap(({ start, deltas }, index) => [
      { type: "content_block_start", index, content_block: start },
      ...deltas.flatMap((delta, n) => [
        { type: "content_block_delta", index, delta },
        // Pings come at any time.
        ...(index === 0 && n === 0 ? [{ type: "ping" }] : []),
      ]),
      { type: "content_block_stop", index },
    ]),
    { type: "message_delta", delta: stop, usage: cumulative },
    { type: "message_stop" },
  ]);
  const whole = { ...base, content: blocks.map(({ done }) => done), ...stop, usage };
  return {
    from,
    host: "messages",
    stream,
    whole,
    story: { ...story, usage: used(input, output, { cacheRead, cacheWrite, reasoning }) },
  };
}

const text = (...words: string[]): Block => ({
  start: { type: "text", text: "" },
  deltas: words.map((text) => ({ type: "text_delta", text })),
  done: { type: "text", text: words.join("") },
});

const thinking = (words: readonly string[], signature: string): Block => ({
  start: { type: "thinking", thinking: "", signature: "" },
  deltas: [
    ...words.map((thinking) => ({ type: "thinking_delta", thinking })),
    { type: "signature_delta", signature },
  ],
  done: { type: "thinking", thinking: words.join(""), signature },
});

const redacted = (data: string): Block => ({
  start: { type: "redacted_thinking", data },
  deltas: [],
  done: { type: "redacted_thinking", data },
});

const call = (id: string, name: string, ...words: string[]): Block => ({
  start: { type: "tool_use", id, name, input: {}, caller: { type: "direct" } },
  deltas: ["", ...words].map((partial_json) => ({ type: "input_json_delta", partial_json })),
  done: { type: "tool_use", id, name, input: JSON.parse(words.join("") || "{}"), caller: { type: "direct" } },
});

export const ANTHROPIC_MESSAGES = {
  "text, most of its prompt from the cache": anthropic({
    from: "guide “Prompt caching”, “Tracking cache performance”",
    blocks: [text("Grüße", " aus", " Oslo 🌍.")],
    reason: "end_turn",
    tokens: [86, 512, 128, 300, 0],
    story: { text: "Grüße aus Oslo 🌍.", end: "end" },
  }),
  "thoughts, hidden thoughts, words, two calls at once": anthropic({
    from: "guides “Extended thinking” (redacted_thinking, signature_delta) and “Tool use” (parallel)",
    blocks: [
      thinking(["They want", " the weather."], "EqQBCgIYAhIM1gbcDa9GJwZA2b3h"),
      redacted("EmwKAhgBEgy3va3pzix/LafPsn4a"),
      text("Let me", " look."),
      call("toolu_01T1x1fJ34qAmk2tNTrN7Up6", "get_weather", '{"city":', ' "Paris"', "}"),
      call("toolu_01Lu2Jv5xT8BqQn4XdCkP9sR", "get_weather", '{"city": "Bogotá"}'),
    ],
    reason: "tool_use",
    tokens: [120, 0, 0, 90, 64],
    story: {
      reasoning: "They want the weather.",
      text: "Let me look.",
      calls: [
        { name: "get_weather", input: '{"city": "Paris"}' },
        { name: "get_weather", input: '{"city": "Bogotá"}' },
      ],
      end: "tools",
    },
  }),
  "thoughts whose text is left out": anthropic({
    from: 'guide “Extended thinking”, `display: "omitted"`',
    blocks: [thinking([], "EosnCkYICxIMMb3LzNrMu"), text("42")],
    reason: "end_turn",
    tokens: [20, 0, 0, 9, 8],
    story: { text: "42", end: "end" },
  }),
  "a call without arguments": anthropic({
    from: "“Streaming Messages”, tool use; no input_json_delta but the empty one",
    blocks: [call("toolu_01A09q90qw90lq917835lq9", "list_files")],
    reason: "tool_use",
    story: { calls: [{ name: "list_files", input: "{}" }], end: "tools" },
  }),
  "an answer in JSON": anthropic({
    from: "guide “Structured outputs”",
    blocks: [text('{"city":', '"Oslo"}')],
    reason: "end_turn",
    story: { text: '{"city":"Oslo"}', end: "end" },
  }),
  "a refusal": anthropic({
    from: "guide “Handling stop reasons”, `refusal`",
    blocks: [text("The recipe")],
    reason: "refusal",
    details: { type: "refusal", category: null, explanation: null },
    story: { text: "The recipe", end: "filter" },
  }),
  "an answer that is too long": anthropic({
    from: "guide “Handling stop reasons”, `max_tokens`",
    blocks: [text("Once upon", " a")],
    reason: "max_tokens",
    story: { text: "Once upon a", end: "length" },
  }),
  "a prompt that fills the context": anthropic({
    from: "guide “Handling stop reasons”, `model_context_window_exceeded`",
    blocks: [text("Once upon")],
    reason: "model_context_window_exceeded",
    story: { text: "Once upon", end: "length", ending: "model_context_window_exceeded" },
  }),
  "a stop sequence": anthropic({
    from: "guide “Handling stop reasons”, `stop_sequence`",
    blocks: [text("one", ", two")],
    reason: "stop_sequence",
    sequence: "three",
    story: { text: "one, two", end: "sequence", sequence: "three" },
  }),
} satisfies Record<string, Transcript>;
