import type { SurfaceName } from "../../catalog/catalog.ts";
import { asObject } from "../json/json.ts";

/**
 * What becomes of each field of a request whose host speaks another language: it is translated; it is left
 * out, because the answer means the same without it; or the request is refused, because it would not.
 * Requests are checked against these tables, and docs/surfaces.md is generated from them. A field that is
 * null counts as absent; a field that is not listed is left out.
 */
export type Verdict =
  | { readonly kind: "translated" }
  | Omission
  | { readonly kind: "refuse"; readonly why: string; readonly unless?: (value: unknown) => boolean };

export interface Omission {
  readonly kind: "omit";
  readonly why: string;
}

type FieldVerdicts = Readonly<Partial<Record<SurfaceName, Verdict>>>;

const TRANSLATED: Verdict = { kind: "translated" };
const omit = (why: string): Omission => ({ kind: "omit", why });
const refuse = (why: string, unless?: (value: unknown) => boolean): Verdict =>
  unless === undefined ? { kind: "refuse", why } : { kind: "refuse", why, unless };

const isOneOf =
  (...values: unknown[]) =>
  (value: unknown) =>
    values.includes(value);
const billsItself = (value: unknown) => asObject(value)?.bill_to === "self";
const isEmpty = (value: unknown) => typeof value === "object" && Object.keys(value!).length === 0;
const isTextOnly = (value: unknown) => Array.isArray(value) && value.every((one) => one === "text");

/** Read by the gateway, or the same for every host. */
const ALWAYS: Readonly<Record<string, Verdict>> = Object.fromEntries(
  ["model", "models", "provider", "route", "fallbacks", "auto_cache", "stream", "stream_options"].map(
    (name) => [name, TRANSLATED],
  ),
);

const NO_LOGPROBS = refuse("it does not report token probabilities", isOneOf(false, 0));
const NO_TIER = refuse("it has no such service tier", isOneOf("auto", "default"));
const LABELS = omit("labels for the host's records");
const CACHING_HINT = omit("a retention of the host's cache");
const LENGTH_HINT = omit("a hint about the answer's length");
const SHORTENING = omit("shortening by the host; the prompt is sent whole, and refused if it does not fit");
const GATEWAY_STORES_NOTHING = omit("nothing is stored");

const NO_SEED = omit("no API promises the same answer for the same seed");
const NO_PENALTIES = refuse("it has no penalties", isOneOf(0));
/** Words of single vendors for how to think (vendor-words). */
const THINKING_WORDS = [
  "enable_thinking",
  "thinking_budget",
  "thinking",
  "chat_template_kwargs",
  "disable_reasoning",
] as const;

const THINKING = Object.fromEntries(THINKING_WORDS.map((name) => [name, TRANSLATED]));

const chat: Readonly<Record<string, FieldVerdicts>> = {
  ...both("responses", "messages", {
    ...ALWAYS,
    ...THINKING,
    reasoning_format: TRANSLATED,
    prompt_cache_options: TRANSLATED,
    cache_control: TRANSLATED,
  }),
  messages: { responses: TRANSLATED, messages: TRANSLATED },
  max_tokens: { responses: TRANSLATED, messages: TRANSLATED },
  max_completion_tokens: { responses: TRANSLATED, messages: TRANSLATED },
  temperature: { responses: TRANSLATED, messages: TRANSLATED },
  top_p: { responses: TRANSLATED, messages: TRANSLATED },
  top_k: { responses: refuse("it has no `top_k`"), messages: TRANSLATED },
  tools: { responses: TRANSLATED, messages: TRANSLATED },
  tool_choice: { responses: TRANSLATED, messages: TRANSLATED },
  parallel_tool_calls: { responses: TRANSLATED, messages: TRANSLATED },
  response_format: { responses: TRANSLATED, messages: TRANSLATED },
  stop: { responses: TRANSLATED, messages: TRANSLATED },
  reasoning_effort: { responses: TRANSLATED, messages: TRANSLATED },
  reasoning: { responses: TRANSLATED, messages: TRANSLATED },
  include_reasoning: { responses: TRANSLATED, messages: TRANSLATED },
  verbosity: { responses: TRANSLATED, messages: LENGTH_HINT },
  user: { responses: TRANSLATED, messages: TRANSLATED },
  safety_identifier: { responses: TRANSLATED, messages: TRANSLATED },
  metadata: { responses: TRANSLATED, messages: LABELS },
  prompt_cache_key: { responses: TRANSLATED, messages: TRANSLATED },
  prompt_cache_retention: { responses: TRANSLATED, messages: CACHING_HINT },
  service_tier: { responses: TRANSLATED, messages: NO_TIER },
  logprobs: { responses: TRANSLATED, messages: NO_LOGPROBS },
  top_logprobs: { responses: TRANSLATED, messages: NO_LOGPROBS },
  ...both("responses", "messages", {
    n: refuse("it gives one answer per request; send the request several times", isOneOf(1)),
    seed: NO_SEED,
    random_seed: NO_SEED,
    logit_bias: refuse("it cannot favour tokens", isEmpty),
    presence_penalty: NO_PENALTIES,
    frequency_penalty: NO_PENALTIES,
    prediction: omit("a hint that only makes an answer faster"),
    store: GATEWAY_STORES_NOTHING,
    modalities: refuse("it answers in text only", isTextOnly),
    audio: refuse("it answers in text only"),
    web_search_options: refuse("it takes web search in another form"),
    functions: refuse("functions were replaced by tools in 2023; use `tools`"),
    function_call: refuse("functions were replaced by tools in 2023; use `tool_choice`"),
    usage: omit("the gateway reports usage itself"),
  }),
};

const responses: Readonly<Record<string, FieldVerdicts>> = {
  ...both("chat.completions", "messages", { ...ALWAYS, ...THINKING, reasoning_effort: TRANSLATED }),
  ...both("chat.completions", "messages", {
    input: TRANSLATED,
    instructions: TRANSLATED,
    max_output_tokens: TRANSLATED,
    temperature: TRANSLATED,
    top_p: TRANSLATED,
    tools: TRANSLATED,
    tool_choice: TRANSLATED,
    parallel_tool_calls: TRANSLATED,
    reasoning: TRANSLATED,
    text: TRANSLATED,
    include: TRANSLATED,
    user: TRANSLATED,
    safety_identifier: TRANSLATED,
    prompt_cache_key: TRANSLATED,
    prompt_cache_options: TRANSLATED,
    cache_control: TRANSLATED,
    // Judged already when the request was read: they are absent, or ask for nothing to be kept.
    store: TRANSLATED,
    background: TRANSLATED,
    previous_response_id: TRANSLATED,
    conversation: TRANSLATED,
    truncation: SHORTENING,
    context_management: SHORTENING,
    max_tool_calls: omit("limits the host's own tools, and it has none"),
    client_metadata: LABELS,
    prompt: refuse("prompts are stored in an account at OpenAI; send the text in `input`"),
    image: refuse("it answers in text only"),
    generate: refuse("it answers every request, and the answer would be charged", isOneOf(true)),
  }),
  metadata: { "chat.completions": TRANSLATED, messages: LABELS },
  prompt_cache_retention: { "chat.completions": TRANSLATED, messages: CACHING_HINT },
  service_tier: { "chat.completions": TRANSLATED, messages: NO_TIER },
  top_logprobs: { "chat.completions": TRANSLATED, messages: NO_LOGPROBS },
  top_k: { "chat.completions": TRANSLATED, messages: TRANSLATED },
  stop: { "chat.completions": TRANSLATED, messages: TRANSLATED },
  seed: { "chat.completions": TRANSLATED, messages: NO_SEED },
  random_seed: { "chat.completions": TRANSLATED, messages: NO_SEED },
  presence_penalty: { "chat.completions": TRANSLATED, messages: NO_PENALTIES },
  frequency_penalty: { "chat.completions": TRANSLATED, messages: NO_PENALTIES },
};

const messages: Readonly<Record<string, FieldVerdicts>> = {
  ...both("chat.completions", "responses", { ...ALWAYS, ...THINKING, reasoning_effort: TRANSLATED }),
  ...both("chat.completions", "responses", {
    messages: TRANSLATED,
    system: TRANSLATED,
    max_tokens: TRANSLATED,
    temperature: TRANSLATED,
    top_p: TRANSLATED,
    tools: TRANSLATED,
    tool_choice: TRANSLATED,
    thinking: TRANSLATED,
    output_config: TRANSLATED,
    output_format: TRANSLATED,
    metadata: TRANSLATED,
    cache_control: TRANSLATED,
    context_management: SHORTENING,
    diagnostics: omit("asks why the host's cache was missed"),
    service_tier: omit("chooses a tier of an account at Anthropic"),
    speed: refuse("it has no choice of speed", isOneOf("standard")),
    inference_geo: refuse("it has no choice of region", isOneOf("global")),
    thread: refuse("conversations are not stored; send the whole conversation in `messages`"),
    compaction: refuse("only Anthropic's hosts summarize conversations"),
    container: refuse("only Anthropic's hosts run containers"),
    mcp_servers: refuse("only Anthropic's hosts call these servers"),
    user_profile_id: refuse("profiles are kept in an account at Anthropic"),
    workspace_id: refuse("workspaces are kept in an account at Anthropic"),
    billing_policy: refuse("profiles are kept in an account at Anthropic", billsItself),
  }),
  stop_sequences: { "chat.completions": TRANSLATED, responses: TRANSLATED },
  top_k: { "chat.completions": TRANSLATED, responses: refuse("it has no `top_k`") },
  seed: { "chat.completions": TRANSLATED, responses: NO_SEED },
  random_seed: { "chat.completions": TRANSLATED, responses: NO_SEED },
  presence_penalty: { "chat.completions": TRANSLATED, responses: NO_PENALTIES },
  frequency_penalty: { "chat.completions": TRANSLATED, responses: NO_PENALTIES },
};

/** By the client's language, then by the host's. */
export const FIELDS: Readonly<Record<SurfaceName, Readonly<Record<string, FieldVerdicts>>>> = {
  "chat.completions": chat,
  responses,
  messages,
};

/** Parts of fields that are left out. The names are for people: a list shows `[]`. */
export const NESTED = {
  cache_control: omit("the host caches without marks, or takes fewer"),
  prompt_cache_breakpoint: omit("the host caches without marks, or takes fewer"),
  prompt_cache_options: omit("the host has no such choice"),
  "messages[].name": omit("the host's API has no names of participants"),
  "tool_result.is_error": omit("the result's text says what failed"),
  reasoning: omit("earlier reasoning of another family of models"),
  "reasoning.summary": omit("the host decides how much reasoning it shows"),
  "thinking.display": omit("the host decides how much reasoning it shows"),
  temperature: omit("the model chooses it and refuses a value"),
  top_p: omit("the model chooses it, or accepts only `temperature`"),
  top_k: omit("the model chooses it and refuses a value"),
  "reasoning.effort": omit(
    "the ceiling leaves no room, a forced tool excludes reasoning, or the model has no such setting",
  ),
  "reasoning.mode": omit("the host has only its standard mode"),
  "reasoning.context": omit("the host decides which earlier reasoning the model sees"),
  task_budget: omit("a goal for the model, which answers without it"),
  "thinking.budget_tokens": omit("the host has effort levels; the gateway requests the nearest"),
  "image.detail": omit("the host decides the image's resolution"),
  "document.context": omit("the host's API has no field for it"),
  "tools[].format": omit("the grammar is described to the model, not enforced"),
  "tools[].web_search": omit("the host does not have OpenAI's web search"),
  "tools[].hints": omit("hints about tools; the tools are offered without them"),
  reasoning_format: omit("reasoning is separate from the answer"),
  tool_search: omit("the host does not search for tools; those already found are offered"),
  "input[].own_calls": omit(
    "earlier searches and programs of OpenAI's hosts; the model's text has their results",
  ),
  json_mode: omit("the model is instructed to answer with a JSON object; the host does not enforce it"),
  "response_format.name": omit("only the schema is sent"),
  "schema.bounds": omit("the description states bounds that the host cannot enforce"),
  include: omit("details of tools that the host does not have"),
  "metadata.user_id": omit("longer than the 64 characters allowed there"),
  openai: omit("OpenAI's own fields, which this host refuses"),
} as const satisfies Record<string, Omission>;

export type NestedField = keyof typeof NESTED;

function both(
  one: SurfaceName,
  other: SurfaceName,
  rows: Readonly<Record<string, Verdict>>,
): Record<string, FieldVerdicts> {
  return Object.fromEntries(
    Object.entries(rows).map(([field, verdict]) => [field, { [one]: verdict, [other]: verdict }]),
  );
}
