import type { CamelCase } from "../units/camel-case.ts";

/**
 * Where a host, or one model of it, differs from the documented form of its language: true or false. These are the names of
 * the configuration file, and what docs/configuration.md says of them.
 */
export const QUIRK_MEANINGS = {
  no_stream:
    "the host cannot stream: the gateway requests whole answers and streams them to its clients ([more](hosts.md#hosts-that-cannot-stream))",
  no_stream_options: "the host refuses `stream_options` and always reports usage",
  no_chat: "the host does not serve its models on chat, only in its other languages",
  no_chat_tools:
    "the same for requests with tools to a model that may reason, as with OpenAI's models from GPT-5.2 on",
  max_completion_tokens:
    "on chat, the host accepts `max_completion_tokens`, not `max_tokens`, and `reasoning_effort`",
  core_fields_only:
    "on chat, the host refuses the role `developer` and fields that only OpenAI has (`store`, `metadata`, …)",
  strict_messages:
    "on chat, the host refuses members that only answers have (`reasoning_content`, `refusal`) in earlier messages",
  short_call_ids: "on chat, ids of tool calls must be nine letters or digits, as at Mistral",
  names_results: "on chat, a tool's result must name the tool, as at Gemini",
  plain_content: "on chat, content must be one string, not a list of parts",
  cache_control: "on chat, the host accepts Anthropic's `cache_control`, as OpenRouter does",
  cache_marks:
    "on chat and Responses, the host caches a prompt up to a `prompt_cache_breakpoint` for 30 minutes, as OpenAI does from GPT-5.6 on",
  takes_reasoning: "on chat, earlier reasoning must be sent back as `reasoning_content`",
  signs_calls: "on chat, the host signs tool calls and refuses unsigned ones, as Gemini 3 does",
  adaptive_thinking:
    "the host's models take a thinking effort (`thinking: adaptive`) instead of a token budget",
  no_sampling: "the host's models refuse `temperature`, `top_p` and `top_k`; translation leaves them out",
  no_reasoning_effort: "the host's models refuse a reasoning effort; translation leaves it out",
  no_reasoning_summary: "the host refuses requests for reasoning summaries",
  own_tools: "requests may use the host's own tools, whose fees you pay: see below",
  account_references: "requests may refer to what is stored in your account at the host: see below",
  known_fields_only:
    "the gateway leaves out every field that it does not know, and names it in `x-gateway-omitted`",
} as const;

export type QuirkName = keyof typeof QUIRK_MEANINGS;

export type Quirks = { readonly [Name in CamelCase<QuirkName>]?: boolean };
