import type { TBoolean, TOptional } from "@sinclair/typebox";
import type { Quirks } from "../catalog/catalog.ts";
import { yesOrNo } from "./kinds.ts";
import { mapOf, type Setting, setting } from "./setting.ts";

/** Facts about a host, or about one model of it: true or false. */
const MEANINGS = {
  no_stream:
    "the host cannot stream: it is asked for whole answers, which also serve streamed requests and have to arrive within `first_token_ms` ([more](hosts.md#hosts-that-cannot-stream))",
  no_stream_options: "the host refuses `stream_options`, and reports usage without being asked",
  no_chat: "the host serves its models in another of its languages, not on chat",
  no_chat_tools:
    "the same for requests that offer tools to a model that may think, as with OpenAI's models from GPT-5.2 on",
  max_completion_tokens:
    "on chat, the host knows the output ceiling only as `max_completion_tokens`, and reasoning only as `reasoning_effort`",
  core_fields_only:
    "on chat, the host refuses the role `developer` and fields that only OpenAI has (`store`, `metadata`, …), which are left out",
  strict_messages:
    "on chat, the host refuses messages sent back with members that only answers have (`reasoning_content`, `refusal`)",
  short_call_ids:
    "on chat, the host requires ids of tool calls to be nine letters or digits, as Mistral does",
  names_results: "on chat, the host requires the tool's name next to its result, as Gemini does",
  plain_content: "on chat, the host takes content as one string only, not as a list of parts",
  cache_control:
    "on chat, the host accepts Anthropic's `cache_control`, on parts and on the whole, as OpenRouter does",
  cache_marks:
    "on chat and Responses, the host caches a prompt up to marks (`prompt_cache_breakpoint`) and keeps it for 30 minutes, as OpenAI does from GPT-5.6 on",
  takes_reasoning: "on chat, the host needs earlier reasoning back as `reasoning_content`",
  signs_calls: "on chat, the host signs tool calls, as Gemini 3 does, and refuses unsigned ones",
  adaptive_thinking:
    "the host's models take a thinking effort (`thinking: adaptive`) instead of a token budget",
  no_sampling:
    "the host's models choose their own temperature and refuse one in a request; translation leaves it, `top_p` and `top_k` out",
  no_reasoning_effort:
    "the host's models refuse a request that says how hard to think; translation leaves that out",
  no_reasoning_summary: "the host refuses requests for reasoning summaries",
  own_tools:
    "requests may use the host's own tools; what it charges for them besides tokens is not counted: see below",
  account_references:
    "requests may name files, containers, prompts and items that are kept in your account at the host: see below",
  known_fields_only:
    "fields that the gateway does not know are left out and named in `x-gateway-omitted`; otherwise hosts of the client's own language receive them",
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

/** Those of a model in which it differs from its host; null where there are none. */
export function ownQuirks(model: Quirks, host: Quirks): QuirkRow | null {
  const shared = quirkRow(host);
  const own = Object.entries(quirkRow(model)).filter(
    ([name, value]) => value !== (shared[name as QuirkName] ?? false),
  );
  return own.length === 0 ? null : Object.fromEntries(own);
}
