import { json, sse } from "./behaviours.ts";
import type { Behaviour, FakeRequest } from "./host.ts";

/**
 * Hosts that speak chat and look closely at what they are sent, as their providers do: what they do not know,
 * they refuse in the provider's own words. A good request is answered with a call of its first tool, and one
 * that holds a result with text.
 */
export interface StrictChat {
  /** Top-level fields that it knows; null where it passes over others. */
  readonly fields: ReadonlySet<string> | null;
  readonly ceiling?: "max_completion_tokens";
  /** What `reasoning_effort` may be. */
  readonly efforts?: ReadonlySet<string>;
  /** Members of messages by their role; null where it passes over others. */
  readonly members: Readonly<Record<string, ReadonlySet<string>>> | null;
  readonly roles: ReadonlySet<string>;
  readonly callMembers: ReadonlySet<string> | null;
  readonly callId: RegExp;
  readonly resultsNamed: boolean;
  readonly firstCallSigned: boolean;
  /** It takes no lists of parts. */
  readonly plainContent?: true;
  /** What it says of what it refuses, with 400 unless it has a status of its own. */
  readonly says: (what: string) => object;
  readonly status?: number;
}

// biome-ignore lint/suspicious/noExplicitAny: whatever arrives is looked into.
type Loose = Record<string, any>;

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));
const COMMON =
  "model messages temperature top_p max_tokens stream stop response_format tools tool_choice presence_penalty frequency_penalty n parallel_tool_calls";
const OPENAI =
  "store metadata user safety_identifier prompt_cache_key service_tier verbosity stream_options seed logprobs";
const PLAIN = {
  system: words("role content"),
  developer: words("role content"),
  user: words("role content name"),
  assistant: words("role content tool_calls name"),
  tool: words("role content tool_call_id name"),
};
const CALL = words("id type function index");
/** Minds nothing but roles. */
const TOLERANT = {
  fields: null,
  members: null,
  callMembers: null,
  callId: /./,
  resultsNamed: false,
  firstCallSigned: false,
};
const STRICT = { ...TOLERANT, members: PLAIN, callMembers: CALL };
const type = "invalid_request_error";

export const STRICT_CHAT = {
  // A model that does not reason (AAswordman/Operit#1048); reasoning models refuse `max_tokens`
  openai: {
    ...TOLERANT,
    fields: words(`${COMMON.replace("max_tokens", "max_completion_tokens")} ${OPENAI}`),
    ceiling: "max_completion_tokens",
    roles: words("system developer user assistant tool"),
    says: (what) => ({ error: { message: `Unrecognized request argument supplied: ${what}`, type } }),
  },
  // BerriAI/litellm#16265
  xai: {
    ...TOLERANT,
    fields: words(`${COMMON} max_completion_tokens ${OPENAI}`),
    ceiling: "max_completion_tokens",
    roles: words("system developer user assistant tool"),
    says: (what) => ({
      code: "Client specified an invalid argument",
      error: `Model grok-4-latest does not support parameter ${what}.`,
    }),
  },
  // docs.mistral.ai, “Chat Completion”; Gitlawb/openclaude#739, charmbracelet/crush#1590,
  // nearai/ironclaw#1241
  mistral: {
    ...STRICT,
    fields: words(`${COMMON} random_seed safe_prompt prompt_mode prediction metadata`),
    roles: words("system user assistant tool"),
    callId: /^[a-zA-Z0-9]{9}$/,
    says: (what) => ({
      object: "error",
      message: {
        detail: [{ type: "extra_forbidden", loc: ["body", what], msg: "Extra inputs are not permitted" }],
      },
      type,
    }),
    status: 422,
  },
  // console.groq.com/docs, “API reference”; tashfeenahmed/freellmapi#1070, fanenr/chatbot#21
  groq: {
    ...STRICT,
    fields: words(
      `${COMMON} max_completion_tokens stream_options seed user logprobs top_logprobs include_reasoning`,
    ),
    roles: words("system developer user assistant tool"),
    says: (what) => ({ error: { message: `property '${what}' is unsupported`, type } }),
  },
  // inference-docs.cerebras.ai, “Chat completions”; openclaw/openclaw#51058, Kilo-Org/kilocode#10375
  cerebras: {
    ...STRICT,
    fields: words(`${COMMON} max_completion_tokens stream_options seed user logprobs top_logprobs`),
    roles: words("system developer user assistant tool"),
    says: (what) => ({
      message: `${what}: property '${what}' is unsupported`,
      type,
      param: "validation_error",
      code: "wrong_api_format",
    }),
  },
  // ai.google.dev/gemini-api/docs/openai; ed-donner/agents#45, NousResearch/hermes-agent#19728
  gemini: {
    ...STRICT,
    fields: words(`${COMMON} max_completion_tokens stream_options reasoning_effort`),
    efforts: words("none minimal low medium high"),
    roles: words("system developer user assistant tool"),
    callMembers: words("id type function index extra_content"),
    resultsNamed: true,
    firstCallSigned: true,
    says: (what) => [
      {
        error: {
          code: 400,
          message: `Unknown name "${what}": Cannot find field.`,
          status: "INVALID_ARGUMENT",
        },
      },
    ],
  },
  // api-docs.deepseek.com, “Create Chat Completion”; earendil-works/pi#1048, QwenLM/qwen-code#2158
  deepseek: {
    ...TOLERANT,
    roles: words("system user assistant tool latest_reminder"),
    plainContent: true,
    says: (what) => ({ error: { message: `unknown variant \`${what}\``, type } }),
  },
  // ollama/ollama#7125: a ceiling by another name is passed over, and the answer has none
  ollama: {
    ...TOLERANT,
    roles: words("system user assistant tool developer"),
    says: (what) => ({ error: { message: what, type } }),
  },
} satisfies Record<string, StrictChat>;

/** What a provider like this answers. */
export function answerOf(strict: StrictChat, request: FakeRequest): Behaviour {
  const body: Loose = request.json();
  const wrong = whatIsWrong(strict, body);
  if (wrong !== null) return json(strict.says(wrong), strict.status ?? 400);
  const message = body.messages.some(({ role }: Loose) => role === "tool") ? DONE : callOf(body, strict);
  const finish = message.tool_calls === undefined ? "stop" : "tool_calls";
  const head = { id: "chatcmpl-1", created: 1_763_000_000, model: "m" };
  const usage = { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 };
  if (body.stream !== true)
    return json({
      ...head,
      object: "chat.completion",
      choices: [{ index: 0, message, finish_reason: finish }],
      usage,
    });
  const chunks = [
    { ...head, choices: [{ index: 0, delta: message, finish_reason: null }] },
    { ...head, choices: [{ index: 0, delta: {}, finish_reason: finish }] },
    { ...head, choices: [], usage },
  ];
  const events = chunks.map((chunk) => ({
    data: JSON.stringify({ ...chunk, object: "chat.completion.chunk" }),
  }));
  return sse([...events, { data: "[DONE]" }]);
}

/** The first thing that it does not know; null where there is none. */
function whatIsWrong(strict: StrictChat, body: Loose): string | null {
  const unknown = Object.keys(body).find((name) => strict.fields?.has(name) === false);
  if (unknown !== undefined) return unknown;
  const ceiling = strict.ceiling ?? "max_tokens";
  if (typeof body[ceiling] !== "number") return ceiling;
  const effort = body.reasoning_effort;
  if (effort !== undefined && strict.efforts?.has(effort) === false) return "reasoning_effort";
  for (const message of body.messages) {
    const { role } = message;
    if (!strict.roles.has(role)) return role;
    if (strict.plainContent && Array.isArray(message.content)) return "sequence, expected a string";
    const odd = Object.keys(message).find((name) => strict.members?.[role]?.has(name) === false);
    if (odd !== undefined) return `messages.${role}.${odd}`;
    const calls: Loose[] = message.tool_calls ?? [];
    for (const [at, call] of calls.entries()) {
      const more = Object.keys(call).find((name) => strict.callMembers?.has(name) === false);
      if (more !== undefined) return `tool_calls.${more}`;
      if (!strict.callId.test(call.id)) return `Tool call id was ${call.id}`;
      if (at === 0 && strict.firstCallSigned && call.extra_content === undefined) return "thought_signature";
    }
    if (role !== "tool") continue;
    if (!strict.callId.test(message.tool_call_id)) return `Tool call id was ${message.tool_call_id}`;
    if (strict.resultsNamed && !message.name) return "function_response.name: Name cannot be empty";
  }
  return null;
}

const DONE: Loose = { role: "assistant", content: "It is 4 °C." };

const callOf = (body: Loose, { callId, firstCallSigned }: StrictChat): Loose => ({
  role: "assistant",
  content: null,
  reasoning_content: "I should look.",
  tool_calls: [
    {
      index: 0,
      id: callId.test("call_oslo1") ? "call_oslo1" : "D681PevKs",
      type: "function",
      function: { name: body.tools[0].function.name, arguments: '{"city":"Oslo"}' },
      ...(firstCallSigned ? { extra_content: { google: { thought_signature: "CiQB" } } } : {}),
    },
  ],
});
