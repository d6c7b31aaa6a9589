import { type Transcript, unnamed, used } from "./transcript.ts";

/**
 * Hosts that speak OpenAI's chat language with an accent. What differs from OpenAI is what these are for:
 * comments, thoughts under two names, roles repeated, calls whole in one chunk and without an index, usage in
 * odd places.
 */
const CREATED = 1_763_000_000;
const DONE = "data: [DONE]";
const chunkOf =
  (head: object) =>
  (delta: object, finish: string | null = null, more: object = {}, ofChoice: object = {}) => ({
    ...head,
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, finish_reason: finish, ...ofChoice }],
    ...more,
  });
const wholeOf = (head: object, message: object, finish: string, usage: object) => ({
  ...head,
  object: "chat.completion",
  choices: [{ index: 0, message: { role: "assistant", ...message }, logprobs: null, finish_reason: finish }],
  usage,
});

export const COMPATIBLE_CHAT = {
  "OpenRouter: comments, signed thoughts, usage next to an empty choice": openRouter(),
  "DeepSeek: thoughts, its cache next to the details": deepSeek(),
  "vLLM: usage in every chunk, a stop sequence": vllm(),
  "Ollama: a role in every chunk, a call whole in one": ollama(),
  "Groq: x_groq, usage twice": groq(),
  "Gemini: calls without an index, finished by stop": gemini(),
  "Azure: what its filters said comes first": azure(),
  "llama.cpp: timings": llamaCpp(),
  "Mistral: content in parts": mistral(),
  "xAI: thoughts next to the answer's tokens": xai(),
  "Gemini: thoughts in the total alone": geminiThoughts(),
} satisfies Record<string, Transcript>;

function openRouter(): Transcript {
  const head = {
    id: "gen-1763000000-Qz8m",
    provider: "Anthropic",
    model: "anthropic/claude-sonnet-4.5",
    created: CREATED,
  };
  const chunk = chunkOf(head);
  const odd = { native_finish_reason: null, logprobs: null };
  const thought = (text: string) => ({
    role: "assistant",
    content: "",
    reasoning: text,
    reasoning_details: [{ type: "reasoning.text", text, format: "anthropic-claude-v1", index: 0 }],
  });
  const usage = {
    prompt_tokens: 40,
    completion_tokens: 25,
    total_tokens: 65,
    cost: 0.000495,
    is_byok: false,
    prompt_tokens_details: { cached_tokens: 30, cache_write_tokens: 4, audio_tokens: 0 },
    cost_details: { upstream_inference_cost: null },
    completion_tokens_details: { reasoning_tokens: 12, image_tokens: 0 },
  };
  const signature = "EqQBCgIYAhIM1gbcDa9GJwZA2b3h";
  return {
    from: "openrouter.ai/docs: “Streaming” (comments), “Reasoning tokens” (reasoning_details), “Usage accounting”",
    host: "chat.completions",
    stream: unnamed([
      ": OPENROUTER PROCESSING",
      ": OPENROUTER PROCESSING",
      chunk(thought("They want"), null, {}, odd),
      chunk(thought(" a number."), null, {}, odd),
      chunk(
        {
          role: "assistant",
          content: "",
          reasoning: null,
          reasoning_details: [{ type: "reasoning.text", signature, format: "anthropic-claude-v1", index: 0 }],
        },
        null,
        {},
        odd,
      ),
      ": OPENROUTER PROCESSING",
      chunk({ role: "assistant", content: "42" }, null, {}, odd),
      chunk({ role: "assistant", content: "" }, "stop", {}, { ...odd, native_finish_reason: "end_turn" }),
      chunk({ role: "assistant", content: "" }, null, { usage }, odd),
      DONE,
    ]),
    whole: wholeOf(
      head,
      {
        content: "42",
        refusal: null,
        reasoning: "They want a number.",
        reasoning_details: [
          {
            type: "reasoning.text",
            text: "They want a number.",
            signature,
            format: "anthropic-claude-v1",
            index: 0,
          },
        ],
      },
      "stop",
      usage,
    ),
    story: {
      reasoning: "They want a number.",
      text: "42",
      end: "end",
      usage: used(6, 25, { cacheRead: 30, cacheWrite: 4, reasoning: 12 }),
    },
  };
}

function deepSeek(): Transcript {
  const head = {
    id: "1f633d8b-fbdf-4a4f-8b7d",
    created: CREATED,
    model: "deepseek-reasoner",
    system_fingerprint: "fp_8802369eaa",
  };
  const chunk = chunkOf(head);
  const odd = { logprobs: null };
  const usage = {
    prompt_tokens: 18,
    completion_tokens: 31,
    total_tokens: 49,
    prompt_tokens_details: { cached_tokens: 16 },
    completion_tokens_details: { reasoning_tokens: 20 },
    prompt_cache_hit_tokens: 16,
    prompt_cache_miss_tokens: 2,
  };
  return {
    from: "api-docs.deepseek.com: “Create Chat Completion”, “Reasoning Model”",
    host: "chat.completions",
    stream: unnamed([
      chunk({ role: "assistant", content: null, reasoning_content: "" }, null, {}, odd),
      chunk({ content: null, reasoning_content: "9.11 or" }, null, {}, odd),
      ": keep-alive",
      chunk({ content: null, reasoning_content: " 9.8?" }, null, {}, odd),
      chunk({ content: "9.8 is", reasoning_content: null }, null, {}, odd),
      chunk({ content: " greater.", reasoning_content: null }, null, {}, odd),
      chunk({ content: "", reasoning_content: null }, "stop", { usage }, odd),
      DONE,
    ]),
    whole: wholeOf(head, { content: "9.8 is greater.", reasoning_content: "9.11 or 9.8?" }, "stop", usage),
    story: {
      reasoning: "9.11 or 9.8?",
      text: "9.8 is greater.",
      end: "end",
      usage: used(2, 31, { cacheRead: 16, reasoning: 20 }),
    },
  };
}

function vllm(): Transcript {
  const head = { id: "chatcmpl-3f1c0a9be2d64c6f", created: CREATED, model: "Qwen/Qwen3-8B" };
  const chunk = chunkOf(head);
  const usage = (output: number) => ({
    prompt_tokens: 9,
    total_tokens: 9 + output,
    completion_tokens: output,
  });
  const odd = { logprobs: null, token_ids: null };
  return {
    from: "docs.vllm.ai: “OpenAI-Compatible Server” (`stream_options.continuous_usage_stats`, `stop_reason`)",
    host: "chat.completions",
    stream: unnamed([
      chunk(
        { role: "assistant", content: "", reasoning_content: null },
        null,
        { usage: usage(0), prompt_token_ids: null },
        odd,
      ),
      chunk({ content: "one", reasoning_content: null }, null, { usage: usage(1) }, odd),
      chunk({ content: ", two", reasoning_content: null }, null, { usage: usage(3) }, odd),
      chunk(
        { content: "", reasoning_content: null },
        "stop",
        { usage: usage(4) },
        { ...odd, stop_reason: "three" },
      ),
      { ...head, object: "chat.completion.chunk", choices: [], usage: usage(4) },
      DONE,
    ]),
    whole: {
      ...wholeOf(
        head,
        { content: "one, two", refusal: null, tool_calls: [], reasoning_content: null },
        "stop",
        {
          ...usage(4),
          prompt_tokens_details: null,
        },
      ),
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: "one, two",
            refusal: null,
            tool_calls: [],
            reasoning_content: null,
          },
          logprobs: null,
          finish_reason: "stop",
          stop_reason: "three",
        },
      ],
      prompt_logprobs: null,
    },
    story: { text: "one, two", end: "sequence", sequence: "three", usage: used(9, 4) },
  };
}

function ollama(): Transcript {
  const head = { id: "chatcmpl-737", created: CREATED, model: "qwen3:8b", system_fingerprint: "fp_ollama" };
  const chunk = chunkOf(head);
  const call = {
    id: "call_y9zx2h3a",
    type: "function",
    function: { name: "get_weather", arguments: '{"city":"Oslo"}' },
  };
  const usage = { prompt_tokens: 170, completion_tokens: 66, total_tokens: 236 };
  return {
    from: "docs.ollama.com: “OpenAI compatibility”; ollama/openai/openai.go",
    host: "chat.completions",
    stream: unnamed([
      chunk({ role: "assistant", content: "", reasoning: "The user" }),
      chunk({ role: "assistant", content: "", reasoning: " asks." }),
      chunk({ role: "assistant", content: "", tool_calls: [{ index: 0, ...call }] }),
      chunk({ role: "assistant", content: "" }, "tool_calls"),
      { ...head, object: "chat.completion.chunk", choices: [], usage },
      DONE,
    ]),
    whole: wholeOf(
      head,
      { content: "", reasoning: "The user asks.", tool_calls: [call] },
      "tool_calls",
      usage,
    ),
    story: {
      reasoning: "The user asks.",
      calls: [{ name: "get_weather", input: '{"city":"Oslo"}' }],
      end: "tools",
      usage: used(170, 66),
    },
  };
}

function groq(): Transcript {
  const head = {
    id: "chatcmpl-f51b2cd2",
    created: CREATED,
    model: "llama-3.3-70b-versatile",
    system_fingerprint: "fp_76307ac09b",
  };
  const chunk = chunkOf(head);
  const odd = { logprobs: null };
  const call = {
    id: "call_d5wg",
    type: "function",
    function: { name: "get_weather", arguments: '{"city": "Oslo"}' },
  };
  const usage = {
    queue_time: 0.037493756,
    prompt_tokens: 18,
    prompt_time: 0.000680594,
    completion_tokens: 24,
    completion_time: 0.463333333,
    total_tokens: 42,
    total_time: 0.464013927,
  };
  return {
    from: "console.groq.com/docs: “API reference”, “Local tool calling”",
    host: "chat.completions",
    stream: unnamed([
      chunk(
        { role: "assistant", content: "" },
        null,
        { x_groq: { id: "req_01jbd6g2qdfw2adyrt2az8hz4w" } },
        odd,
      ),
      chunk({ content: "Looking." }, null, {}, odd),
      chunk({ tool_calls: [{ ...call, index: 0 }] }, null, {}, odd),
      chunk({}, "tool_calls", { x_groq: { id: "req_01jbd6g2qdfw2adyrt2az8hz4w", usage } }, odd),
      { ...head, object: "chat.completion.chunk", choices: [], usage },
      DONE,
    ]),
    whole: {
      ...wholeOf(head, { content: "Looking.", tool_calls: [call] }, "tool_calls", usage),
      x_groq: { id: "req_01jbd6g2qdfw2adyrt2az8hz4w" },
    },
    story: {
      text: "Looking.",
      calls: [{ name: "get_weather", input: '{"city": "Oslo"}' }],
      end: "tools",
      usage: used(18, 24),
    },
  };
}

function gemini(): Transcript {
  const head = { id: "jZ0UaajQDb2bz7IPq7y5mQE", created: CREATED, model: "gemini-3-flash-preview" };
  const chunk = chunkOf(head);
  const usage = (output: number) => ({
    prompt_tokens: 55,
    completion_tokens: output,
    total_tokens: 55 + output,
  });
  const call = (id: string, city: string) => ({
    extra_content: { google: { thought_signature: "CiQB0e2Kb3Hn" } },
    function: { arguments: `{"city":"${city}"}`, name: "get_weather" },
    id,
    type: "function",
  });
  return {
    from: "ai.google.dev/gemini-api/docs/openai; googleapis/python-genai#2868 (`stop` after calls)",
    host: "chat.completions",
    stream: unnamed([
      chunk({ role: "assistant", tool_calls: [call("function-call-1", "Oslo")] }, null, { usage: usage(17) }),
      chunk({ role: "assistant", tool_calls: [call("function-call-2", "Rome")] }, null, { usage: usage(34) }),
      chunk({ role: "assistant" }, "stop", { usage: usage(34) }),
      DONE,
    ]),
    whole: wholeOf(
      head,
      { tool_calls: [call("function-call-1", "Oslo"), call("function-call-2", "Rome")] },
      "tool_calls",
      usage(34),
    ),
    story: {
      calls: [
        { name: "get_weather", input: '{"city":"Oslo"}' },
        { name: "get_weather", input: '{"city":"Rome"}' },
      ],
      end: "tools",
      usage: used(55, 34),
    },
  };
}

function azure(): Transcript {
  const head = {
    id: "chatcmpl-CECImr5TLfMF",
    created: CREATED,
    model: "gpt-4o-2024-11-20",
    system_fingerprint: "fp_ee1d74bde0",
  };
  const chunk = chunkOf(head);
  const safe = { filtered: false, severity: "safe" };
  const filters = { hate: safe, self_harm: safe, sexual: safe, violence: safe };
  const odd = { logprobs: null, content_filter_results: {} };
  const prompt = [
    {
      prompt_index: 0,
      content_filter_results: { ...filters, jailbreak: { filtered: false, detected: false } },
    },
  ];
  const usage = {
    prompt_tokens: 13,
    completion_tokens: 3,
    total_tokens: 16,
    prompt_tokens_details: { audio_tokens: 0, cached_tokens: 0 },
    completion_tokens_details: {
      accepted_prediction_tokens: 0,
      audio_tokens: 0,
      reasoning_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
  return {
    from: "learn.microsoft.com: Azure OpenAI “Content filtering”, “Content streaming”",
    host: "chat.completions",
    stream: unnamed([
      { choices: [], created: 0, id: "", model: "", object: "", prompt_filter_results: prompt, usage: null },
      chunk({ content: "", refusal: null, role: "assistant" }, null, { usage: null }, odd),
      chunk({ content: "The" }, null, { usage: null }, { ...odd, content_filter_results: filters }),
      chunk({ content: " capital." }, null, { usage: null }, { ...odd, content_filter_results: filters }),
      chunk({}, "stop", { usage: null }, odd),
      { ...head, object: "chat.completion.chunk", choices: [], usage },
      DONE,
    ]),
    whole: {
      ...wholeOf(head, { content: "The capital.", refusal: null, annotations: [] }, "stop", usage),
      prompt_filter_results: prompt,
    },
    story: { text: "The capital.", end: "end", usage: used(13, 3) },
  };
}

function llamaCpp(): Transcript {
  const head = {
    created: CREATED,
    id: "chatcmpl-ecQULm0WqPrftUqjPZO1CFYeDjGZNbDu",
    model: "gemma-4-31B-it.gguf",
    system_fingerprint: "b9554-d403f00ec",
  };
  const chunk = chunkOf(head);
  const timings = {
    cache_n: 236,
    prompt_n: 1,
    prompt_ms: 30.958,
    prompt_per_token_ms: 30.958,
    prompt_per_second: 32.301828283480845,
    predicted_n: 6,
    predicted_ms: 661.064,
    predicted_per_token_ms: 18.887542857142858,
    predicted_per_second: 52.94494935437416,
  };
  const usage = {
    completion_tokens: 6,
    prompt_tokens: 237,
    total_tokens: 243,
    prompt_tokens_details: { cached_tokens: 236 },
  };
  return {
    from: "ggml-org/llama.cpp: tools/server/README.md, pull request 15827 (`timings`)",
    host: "chat.completions",
    stream: unnamed([
      chunk({ role: "assistant", content: null }),
      chunk({ reasoning_content: "Short." }),
      chunk({ content: "Yes" }),
      chunk({ content: "." }),
      chunk({}, "stop"),
      { ...head, object: "chat.completion.chunk", choices: [], usage, timings },
      DONE,
    ]),
    whole: { ...wholeOf(head, { reasoning_content: "Short.", content: "Yes." }, "stop", usage), timings },
    story: { reasoning: "Short.", text: "Yes.", end: "end", usage: used(1, 6, { cacheRead: 236 }) },
  };
}

function mistral(): Transcript {
  const head = {
    id: "cmpl-e5cc70bb28c444948073e77776eb30ef",
    created: CREATED,
    model: "magistral-medium-2509",
  };
  const chunk = chunkOf(head);
  const thought = (text: string) => ({ content: [{ type: "thinking", thinking: [{ type: "text", text }] }] });
  const usage = { prompt_tokens: 16, total_tokens: 30, completion_tokens: 14 };
  const call = {
    id: "D681PevKs",
    function: { name: "get_weather", arguments: '{"city": "Oslo"}' },
    index: 0,
  };
  return {
    from: "docs.mistral.ai: “Reasoning” (content in parts), “Function calling” (no `type` on calls)",
    host: "chat.completions",
    stream: unnamed([
      chunk({ role: "assistant", content: "" }, null, { p: "abcdef" }),
      chunk(thought("I should")),
      chunk(thought(" look.")),
      chunk({ content: [{ type: "text", text: "Wait." }] }),
      chunk({ content: "", tool_calls: [call] }, "tool_calls", { usage }),
      DONE,
    ]),
    whole: wholeOf(
      head,
      {
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "I should look." }] },
          { type: "text", text: "Wait." },
        ],
        tool_calls: [call],
      },
      "tool_calls",
      usage,
    ),
    story: {
      reasoning: "I should look.",
      text: "Wait.",
      calls: [{ name: "get_weather", input: '{"city": "Oslo"}' }],
      end: "tools",
      usage: used(16, 14),
    },
  };
}

function xai(): Transcript {
  const head = {
    id: "5f3c1c0e-2d5b",
    created: CREATED,
    model: "grok-4",
    system_fingerprint: "fp_156d35dcaa",
  };
  const chunk = chunkOf(head);
  const usage = {
    prompt_tokens: 32,
    completion_tokens: 9,
    total_tokens: 135,
    prompt_tokens_details: { text_tokens: 32, audio_tokens: 0, image_tokens: 0, cached_tokens: 6 },
    completion_tokens_details: {
      reasoning_tokens: 94,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
    num_sources_used: 0,
  };
  return {
    from: "docs.x.ai: “Reasoning”; Google Cloud, “Reasoning for Grok models” (`reasoning_tokens` apart from `completion_tokens`)",
    host: "chat.completions",
    stream: unnamed([
      chunk({ role: "assistant", content: "", reasoning_content: "They want" }),
      chunk({ role: "assistant", reasoning_content: " a number." }),
      chunk({ role: "assistant", content: "42" }),
      chunk({ role: "assistant", content: "" }, "stop"),
      { ...head, object: "chat.completion.chunk", choices: [], usage },
      DONE,
    ]),
    whole: wholeOf(
      head,
      { content: "42", reasoning_content: "They want a number.", refusal: null },
      "stop",
      usage,
    ),
    story: {
      reasoning: "They want a number.",
      text: "42",
      end: "end",
      usage: used(26, 103, { cacheRead: 6, reasoning: 94 }),
    },
  };
}

function geminiThoughts(): Transcript {
  const head = { id: "kZ0UaYjkH9yrz7IP2dKW-Qc", created: CREATED, model: "gemini-2.5-flash" };
  const chunk = chunkOf(head);
  const usage = (output: number) => ({
    prompt_tokens: 20,
    completion_tokens: output,
    total_tokens: 425 + output,
  });
  return {
    from: "ai.google.dev/gemini-api/docs/openai; mozilla-ai/any-llm#1290 (thoughts in Gemini's total, not in its candidates)",
    host: "chat.completions",
    stream: unnamed([
      chunk({ role: "assistant", content: "15% of 240" }, null, { usage: usage(8) }),
      chunk({ role: "assistant", content: " is 36." }, "stop", { usage: usage(12) }),
      DONE,
    ]),
    whole: wholeOf(head, { content: "15% of 240 is 36." }, "stop", usage(12)),
    story: { text: "15% of 240 is 36.", end: "end", usage: used(20, 417, { reasoning: 405 }) },
  };
}
