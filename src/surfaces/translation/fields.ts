import type { SurfaceName } from "../../catalog/catalog.ts";

/**
 * What becomes of each field of a request whose host speaks another language: it is translated; it is left out,
 * because the answer means the same without it; or the request is refused, because it would not. Requests are checked
 * against these tables, and docs/surfaces.md is generated from them. A field that is null counts as absent; a field
 * that is not listed is refused.
 */
export type Verdict =
  | { readonly kind: "said" }
  | Omission
  | { readonly kind: "refuse"; readonly why: string; readonly unless?: (value: unknown) => boolean };

export interface Omission {
  readonly kind: "omit";
  readonly why: string;
}

type Row = Readonly<Partial<Record<SurfaceName, Verdict>>>;

const SAID: Verdict = { kind: "said" };
const omit = (why: string): Omission => ({ kind: "omit", why });
const refuse = (why: string, unless?: (value: unknown) => boolean): Verdict =>
  unless === undefined ? { kind: "refuse", why } : { kind: "refuse", why, unless };

const isOneOf =
  (...values: unknown[]) =>
  (value: unknown) =>
    values.includes(value);
const isEmpty = (value: unknown) => typeof value === "object" && Object.keys(value!).length === 0;
const isTextOnly = (value: unknown) => Array.isArray(value) && value.every((one) => one === "text");

/** Read by the gateway, or the same for every host. */
const ALWAYS: Readonly<Record<string, Verdict>> = Object.fromEntries(
  ["model", "models", "provider", "route", "fallbacks", "stream", "stream_options"].map((name) => [
    name,
    SAID,
  ]),
);

const NO_STOP = refuse(
  "its language has no stop sequences",
  (value) => Array.isArray(value) && isEmpty(value),
);
const NO_LOGPROBS = refuse("its language has no probabilities of tokens", isOneOf(false, 0));
const NO_TIER = refuse("its language has no such service tiers", isOneOf("auto", "default"));
const LABELS = omit("labels for the host's own records, which the client does not see");
const CACHING_HINT = omit("says how long the host may keep its cache; an answer is the same without it");
const LENGTH_HINT = omit("a hint of how long an answer should be, which its language does not have");
const SHORTENING = omit(
  "asks the host to shorten a long prompt; it is sent whole, and refused if it does not fit",
);
const GATEWAY_STORES_NOTHING = omit("nothing is stored");

const chat: Readonly<Record<string, Row>> = {
  ...both("responses", "messages", ALWAYS),
  messages: { responses: SAID, messages: SAID },
  max_tokens: { responses: SAID, messages: SAID },
  max_completion_tokens: { responses: SAID, messages: SAID },
  temperature: { responses: SAID, messages: SAID },
  top_p: { responses: SAID, messages: SAID },
  top_k: { responses: refuse("its language has no top_k"), messages: SAID },
  tools: { responses: SAID, messages: SAID },
  tool_choice: { responses: SAID, messages: SAID },
  parallel_tool_calls: { responses: SAID, messages: SAID },
  response_format: { responses: SAID, messages: SAID },
  stop: { responses: NO_STOP, messages: SAID },
  reasoning_effort: { responses: SAID, messages: SAID },
  reasoning: { responses: SAID, messages: SAID },
  include_reasoning: { responses: SAID, messages: SAID },
  verbosity: { responses: SAID, messages: LENGTH_HINT },
  user: { responses: SAID, messages: SAID },
  safety_identifier: { responses: SAID, messages: SAID },
  metadata: { responses: SAID, messages: LABELS },
  prompt_cache_key: { responses: SAID, messages: SAID },
  prompt_cache_retention: { responses: SAID, messages: CACHING_HINT },
  prompt_cache_options: { responses: SAID, messages: CACHING_HINT },
  service_tier: { responses: SAID, messages: NO_TIER },
  logprobs: { responses: SAID, messages: NO_LOGPROBS },
  top_logprobs: { responses: SAID, messages: NO_LOGPROBS },
  ...both("responses", "messages", {
    n: refuse("it gives one answer to a request; send the request several times", isOneOf(1)),
    seed: omit("the same seed promises no same answer in any language"),
    logit_bias: refuse("its language cannot favour tokens", isEmpty),
    presence_penalty: refuse("its language has no penalties", isOneOf(0)),
    frequency_penalty: refuse("its language has no penalties", isOneOf(0)),
    prediction: omit("a hint that makes an answer faster, not different"),
    store: GATEWAY_STORES_NOTHING,
    modalities: refuse("it answers in text only", isTextOnly),
    audio: refuse("it answers in text only"),
    web_search_options: refuse("its search is asked for in other ways"),
    functions: refuse("functions became `tools` in 2023; use those"),
    function_call: refuse("functions became `tools` in 2023; use `tool_choice`"),
    usage: omit("usage is always reported"),
  }),
};

const responses: Readonly<Record<string, Row>> = {
  ...both("chat.completions", "messages", ALWAYS),
  ...both("chat.completions", "messages", {
    input: SAID,
    instructions: SAID,
    max_output_tokens: SAID,
    temperature: SAID,
    top_p: SAID,
    tools: SAID,
    tool_choice: SAID,
    parallel_tool_calls: SAID,
    reasoning: SAID,
    text: SAID,
    include: SAID,
    user: SAID,
    safety_identifier: SAID,
    prompt_cache_key: SAID,
    // Judged already when the request was read: they are absent, or ask for nothing to be kept.
    store: SAID,
    background: SAID,
    previous_response_id: SAID,
    conversation: SAID,
    truncation: SHORTENING,
    context_management: SHORTENING,
    max_tool_calls: omit("counts the tools that the host runs itself, and there are none"),
    client_metadata: LABELS,
    prompt: refuse("prompts are stored in an account at OpenAI; send the text in `input`"),
    image: refuse("it answers in text only"),
  }),
  metadata: { "chat.completions": SAID, messages: LABELS },
  prompt_cache_retention: { "chat.completions": SAID, messages: CACHING_HINT },
  prompt_cache_options: { "chat.completions": SAID, messages: CACHING_HINT },
  service_tier: { "chat.completions": SAID, messages: NO_TIER },
  top_logprobs: { "chat.completions": SAID, messages: NO_LOGPROBS },
};

const messages: Readonly<Record<string, Row>> = {
  ...both("chat.completions", "responses", ALWAYS),
  ...both("chat.completions", "responses", {
    messages: SAID,
    system: SAID,
    max_tokens: SAID,
    temperature: SAID,
    top_p: SAID,
    tools: SAID,
    tool_choice: SAID,
    thinking: SAID,
    output_config: SAID,
    output_format: SAID,
    metadata: SAID,
    top_k: refuse("its language has no top_k"),
    cache_control: omit("these hosts cache prompts without being asked"),
    context_management: SHORTENING,
    diagnostics: omit("asks why the host's cache was missed"),
    service_tier: omit("chooses between the tiers of an account at Anthropic"),
    speed: refuse("its language has no speeds", isOneOf("standard")),
    inference_geo: refuse("its language cannot say where it has to run", isOneOf("global")),
    thread: refuse("conversations are not stored; send the whole of it in `messages`"),
    compaction: refuse("conversations are summarized by Anthropic"),
    container: refuse("containers are run by Anthropic"),
    mcp_servers: refuse("these servers are called by Anthropic"),
    user_profile_id: refuse("profiles are kept in an account at Anthropic"),
    workspace_id: refuse("workspaces are kept in an account at Anthropic"),
  }),
  stop_sequences: { "chat.completions": SAID, responses: NO_STOP },
};

/** By the client's language, then by the host's. */
export const FIELDS: Readonly<Record<SurfaceName, Readonly<Record<string, Row>>>> = {
  "chat.completions": chat,
  responses,
  messages,
};

/** Parts of fields that are left out. The names are for people: a list shows `[]`. */
export const NESTED = {
  cache_control: omit("marks of what to cache, for hosts that cache without being asked"),
  "messages[].name": omit("a participant's name, which its language does not have"),
  "tool_result.is_error": omit("the text of the result tells the model what failed"),
  reasoning: omit(
    "thoughts of an earlier answer that this host cannot read: another family of models had them",
  ),
  "reasoning.summary": omit("the host decides how much of its thoughts it shows"),
  "thinking.display": omit("the host decides how much of its thoughts it shows"),
  temperature: omit("the model chooses it itself, and refuses to be told"),
  top_p: omit("the model chooses it itself, or takes no `temperature` beside it"),
  top_k: omit("the model chooses it itself, and refuses to be told"),
  "reasoning.effort": omit(
    "the ceiling leaves no room for thoughts, a tool is forced, which excludes them there, or the model cannot be told",
  ),
  "reasoning.mode": omit("how OpenAI's models think: the host thinks in its standard way"),
  "reasoning.context": omit("the host decides which of its earlier thoughts the model sees"),
  task_budget: omit("tells the model how far a task has to get; it answers without knowing"),
  "thinking.budget_tokens": omit("its language has efforts instead of budgets; the nearest one is asked for"),
  "image.detail": omit("the host decides how closely it looks"),
  "document.context": omit("its language has no room for it"),
  "tools[].format": omit("the grammar is described to the model, not enforced"),
  "tools[].web_search": omit("the search of OpenAI is not there; the model answers without it"),
  "tools[].hints": omit("hints for how tools are offered and called; they are offered in the plain way"),
  "response_format.name": omit("the schema alone is sent"),
  include: omit("details of tools that the host does not have"),
  "metadata.user_id": omit("longer than the 64 characters that are allowed there"),
  openai: omit("fields of OpenAI's own, which this host refuses"),
} as const satisfies Record<string, Omission>;

export type NestedField = keyof typeof NESTED;

function both(
  one: SurfaceName,
  other: SurfaceName,
  rows: Readonly<Record<string, Verdict>>,
): Record<string, Row> {
  return Object.fromEntries(
    Object.entries(rows).map(([field, verdict]) => [field, { [one]: verdict, [other]: verdict }]),
  );
}
