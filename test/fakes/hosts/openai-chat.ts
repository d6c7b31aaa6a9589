import { type Story, type Transcript, unnamed, used } from "./transcript.ts";

/** OpenAI's own chat completions: platform.openai.com, API reference, "Chat Completions" and "Streaming". */
const ID = "chatcmpl-CTq5nGJ8xYzVd0Hk3bP7wR2a";
const HEAD = { id: ID, created: 1_763_000_000, model: "gpt-5.1-2025-11-13", service_tier: "default" };

const tokens = (input: number, output: number, cached = 0, reasoning = 0) => ({
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
});

interface Turn {
  readonly deltas: readonly object[];
  /** For each delta, what its tokens were worth. */
  readonly logprobs?: readonly object[];
  readonly message: object;
  readonly finish: string;
  readonly usage?: object;
  readonly story: Omit<Story, "usage"> & Partial<Pick<Story, "usage">>;
  readonly from: string;
}

function openai({ deltas, logprobs, message, finish, usage = tokens(20, 9), story, from }: Turn): Transcript {
  const chunk = (choices: object[], use: object | null, at: number): object => ({
    ...HEAD,
    object: "chat.completion.chunk",
    system_fingerprint: null,
    choices,
    usage: use,
    // Padding against side channels (2025): random letters.
    obfuscation: "aR7".slice(at % 3),
  });
  const worth = (at: number) =>
    logprobs?.[at] === undefined ? null : { content: [logprobs[at]], refusal: null };
  const stream = unnamed([
    ...[{ role: "assistant", content: null, refusal: null }, ...deltas].map((delta, at) =>
      chunk([{ index: 0, delta, logprobs: worth(at - 1), finish_reason: null }], null, at),
    ),
    chunk([{ index: 0, delta: {}, logprobs: null, finish_reason: finish }], null, 1),
    chunk([], usage, 2),
    "data: [DONE]",
  ]);
  const choice = {
    index: 0,
    message: { role: "assistant", content: null, refusal: null, annotations: [], ...message },
    logprobs: logprobs === undefined ? null : { content: logprobs, refusal: null },
    finish_reason: finish,
  };
  const whole = { ...HEAD, object: "chat.completion", system_fingerprint: null, choices: [choice], usage };
  return { from, host: "chat.completions", stream, whole, story: { usage: used(20, 9), ...story } };
}

const started = (index: number, id: string, name: string) => ({
  tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }],
});
const more = (index: number, words: string) => ({ tool_calls: [{ index, function: { arguments: words } }] });

export const OPENAI_CHAT = {
  "text, most of its prompt from the cache, after thoughts that are not shown": openai({
    from: "guide “Prompt caching”; guide “Reasoning models”",
    deltas: [{ content: "Grüße" }, { content: " aus" }, { content: " Oslo 🌍." }],
    message: { content: "Grüße aus Oslo 🌍." },
    finish: "stop",
    usage: tokens(726, 300, 640, 192),
    story: {
      text: "Grüße aus Oslo 🌍.",
      end: "end",
      usage: used(86, 300, { cacheRead: 640, reasoning: 192 }),
    },
  }),
  "two calls at once": openai({
    from: "guide “Function calling”, “Streaming” and “Parallel function calling”",
    deltas: [
      started(0, "call_DdmO9pD3xa9XTPNJ32zg2hcA", "get_weather"),
      more(0, '{"ci'),
      more(0, 'ty":"Paris"}'),
      started(1, "call_wKpPBg2vG5aEqLhIqCPqGTqG", "get_weather"),
      more(1, '{"city":"Bogotá'),
      more(1, '"}'),
    ],
    message: {
      tool_calls: [
        {
          id: "call_DdmO9pD3xa9XTPNJ32zg2hcA",
          type: "function",
          function: { name: "get_weather", arguments: '{"city":"Paris"}' },
        },
        {
          id: "call_wKpPBg2vG5aEqLhIqCPqGTqG",
          type: "function",
          function: { name: "get_weather", arguments: '{"city":"Bogotá"}' },
        },
      ],
    },
    finish: "tool_calls",
    story: {
      calls: [
        { name: "get_weather", input: '{"city":"Paris"}' },
        { name: "get_weather", input: '{"city":"Bogotá"}' },
      ],
      end: "tools",
    },
  }),
  "words, then a call without arguments": openai({
    from: "guide “Function calling”",
    deltas: [{ content: "Let me look." }, started(0, "call_J7hTqk", "list_files"), more(0, "{}")],
    message: {
      content: "Let me look.",
      tool_calls: [
        { id: "call_J7hTqk", type: "function", function: { name: "list_files", arguments: "{}" } },
      ],
    },
    finish: "tool_calls",
    story: { text: "Let me look.", calls: [{ name: "list_files", input: "{}" }], end: "tools" },
  }),
  "an answer in JSON": openai({
    from: "guide “Structured outputs”",
    deltas: [{ content: '{"city":' }, { content: '"Oslo"}' }],
    message: { content: '{"city":"Oslo"}' },
    finish: "stop",
    story: { text: '{"city":"Oslo"}', end: "end" },
  }),
  "a refusal": openai({
    from: "guide “Structured outputs”, “Refusals”",
    deltas: [{ refusal: "I'm sorry, I cannot" }, { refusal: " assist with that." }],
    message: { refusal: "I'm sorry, I cannot assist with that." },
    finish: "stop",
    story: { refusal: "I'm sorry, I cannot assist with that.", end: "end" },
  }),
  "an answer that is too long": openai({
    from: "API reference, `finish_reason`",
    deltas: [{ content: "Once upon" }, { content: " a" }],
    message: { content: "Once upon a" },
    finish: "length",
    story: { text: "Once upon a", end: "length" },
  }),
  "an answer that was filtered": openai({
    from: "API reference, `finish_reason`",
    deltas: [{ content: "The recipe" }],
    message: { content: "The recipe" },
    finish: "content_filter",
    story: { text: "The recipe", end: "filter" },
  }),
  "a freeform call": openai({
    from: "API reference, `tool_calls` of type `custom`; guide “Function calling”, “Custom tools”",
    deltas: [
      {
        tool_calls: [
          { index: 0, id: "call_cU5t0m", type: "custom", custom: { name: "apply_patch", input: "" } },
        ],
      },
      { tool_calls: [{ index: 0, custom: { input: "*** Begin" } }] },
      { tool_calls: [{ index: 0, custom: { input: ' "Patch"\n' } }] },
    ],
    message: {
      tool_calls: [
        { id: "call_cU5t0m", type: "custom", custom: { name: "apply_patch", input: '*** Begin "Patch"\n' } },
      ],
    },
    finish: "tool_calls",
    story: { calls: [{ name: "apply_patch", input: '*** Begin "Patch"\n', custom: true }], end: "tools" },
  }),
  "text with the probability of each token": openai({
    from: "API reference, `logprobs`",
    deltas: [{ content: "Hello" }, { content: "!" }],
    logprobs: [
      {
        token: "Hello",
        logprob: -0.317,
        bytes: [72, 101, 108, 108, 111],
        top_logprobs: [{ token: "Hello", logprob: -0.317, bytes: [72, 101, 108, 108, 111] }],
      },
      {
        token: "!",
        logprob: -0.02,
        bytes: [33],
        top_logprobs: [{ token: "!", logprob: -0.02, bytes: [33] }],
      },
    ],
    message: { content: "Hello!" },
    finish: "stop",
    story: { text: "Hello!", end: "end" },
  }),
} satisfies Record<string, Transcript>;
