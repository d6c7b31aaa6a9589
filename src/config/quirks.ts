import type { TBoolean, TOptional } from "@sinclair/typebox";
import type { Quirks } from "../catalog/catalog.ts";
import { yesOrNo } from "./kinds.ts";
import { mapOf, type Setting, setting } from "./setting.ts";

/** Facts about a host, or about one model of it: true or false. */
const MEANINGS = {
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

type QuirkName = keyof typeof MEANINGS;
type QuirkRows = Readonly<Record<QuirkName, Setting<TOptional<TBoolean>, boolean | undefined>>>;

export type QuirkRow = Partial<Record<QuirkName, boolean>>;

const ROWS = Object.fromEntries(
  Object.entries(MEANINGS).map(([name, doc]) => [
    name,
    setting(yesOrNo(), undefined, { doc, otherwise: "`false`" }),
  ]),
) as QuirkRows;

export const QUIRKS = mapOf(ROWS, "a map of quirks");

/** The same as a file has them. */
export const quirkRow = (quirks: Quirks): QuirkRow => QUIRKS.show(quirks) as QuirkRow;

/** The model's quirks that differ from its host's; null where there are none. */
export function ownQuirks(model: Quirks, host: Quirks): QuirkRow | null {
  const shared = quirkRow(host);
  const own = Object.entries(quirkRow(model)).filter(
    ([name, value]) => value !== (shared[name as QuirkName] ?? false),
  );
  return own.length === 0 ? null : Object.fromEntries(own);
}
