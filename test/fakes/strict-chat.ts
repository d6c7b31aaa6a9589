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
  readonly refuse: (what: string) => Behaviour;
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
const ANY = /./;

export const STRICT_CHAT = {
  // A model that does not reason (AAswordman/Operit#1048); reasoning models refuse `max_tokens`
  openai: {
    fields: words(`${COMMON.replace("max_tokens", "max_completion_tokens")} ${OPENAI}`),
    ceiling: "max_completion_tokens",
    members: null,
    roles: words("system developer user assistant tool"),
    callMembers: null,
    callId: ANY,
    resultsNamed: false,
    firstCallSigned: false,
    refuse: (what) =>
      json(
        {
          error: {
            message: `Unrecognized request argument supplied: ${what}`,
            type: "invalid_request_error",
          },
        },
        400,
      ),
  },
  // BerriAI/litellm#16265
  xai: {
    fields: words(`${COMMON} max_completion_tokens ${OPENAI}`),
    ceiling: "max_completion_tokens",
    members: null,
    roles: words("system developer user assistant tool"),
    callMembers: null,
    callId: ANY,
    resultsNamed: false,
    firstCallSigned: false,
    refuse: (what) =>
      json(
        {
          code: "Client specified an invalid argument",
          error: `Model grok-4-latest does not support parameter ${what}.`,
        },
        400,
      ),
  },
  // docs.mistral.ai, “Chat Completion”; Gitlawb/openclaude#739, charmbracelet/crush#1590,
  // nearai/ironclaw#1241
  mistral: {
    fields: words(`${COMMON} random_seed safe_prompt prompt_mode prediction metadata`),
    members: PLAIN,
    roles: words("system user assistant tool"),
    callMembers: CALL,
    callId: /^[a-zA-Z0-9]{9}$/,
    resultsNamed: false,
    firstCallSigned: false,
    refuse: (what) =>
      json(
        {
          object: "error",
          message: {
            detail: [{ type: "extra_forbidden", loc: ["body", what], msg: "Extra inputs are not permitted" }],
          },
          type: "invalid_request_error",
        },
        422,
      ),
  },
  // console.groq.com/docs, “API reference”; tashfeenahmed/freellmapi#1070, fanenr/chatbot#21
  groq: {
    fields: words(
      `${COMMON} max_completion_tokens stream_options seed user logprobs top_logprobs include_reasoning`,
    ),
    members: PLAIN,
    roles: words("system developer user assistant tool"),
    callMembers: CALL,
    callId: ANY,
    resultsNamed: false,
    firstCallSigned: false,
    refuse: (what) =>
      json({ error: { message: `property '${what}' is unsupported`, type: "invalid_request_error" } }, 400),
  },
  // inference-docs.cerebras.ai, “Chat completions”; openclaw/openclaw#51058, Kilo-Org/kilocode#10375
  cerebras: {
    fields: words(`${COMMON} max_completion_tokens stream_options seed user logprobs top_logprobs`),
    members: PLAIN,
    roles: words("system developer user assistant tool"),
    callMembers: CALL,
    callId: ANY,
    resultsNamed: false,
    firstCallSigned: false,
    refuse: (what) =>
      json(
        {
          message: `${what}: property '${what}' is unsupported`,
          type: "invalid_request_error",
          param: "validation_error",
          code: "wrong_api_format",
        },
        400,
      ),
  },
  // ai.google.dev/gemini-api/docs/openai; ed-donner/agents#45, NousResearch/hermes-agent#19728
  gemini: {
    fields: words(`${COMMON} max_completion_tokens stream_options reasoning_effort`),
    efforts: words("none minimal low medium high"),
    members: PLAIN,
    roles: words("system developer user assistant tool"),
    callMembers: words("id type function index extra_content"),
    callId: ANY,
    resultsNamed: true,
    firstCallSigned: true,
    refuse: (what) =>
      json(
        [
          {
            error: {
              code: 400,
              message: `Unknown name "${what}": Cannot find field.`,
              status: "INVALID_ARGUMENT",
            },
          },
        ],
        400,
      ),
  },
  // api-docs.deepseek.com, “Create Chat Completion”; earendil-works/pi#1048, QwenLM/qwen-code#2158
  deepseek: {
    fields: null,
    members: null,
    roles: words("system user assistant tool latest_reminder"),
    callMembers: null,
    callId: ANY,
    resultsNamed: false,
    firstCallSigned: false,
    plainContent: true,
    refuse: (what) =>
      json({ error: { message: `unknown variant \`${what}\``, type: "invalid_request_error" } }, 400),
  },
  // ollama/ollama#7125: a ceiling by another name is passed over, and the answer has none
  ollama: {
    fields: null,
    members: null,
    roles: words("system user assistant tool developer"),
    callMembers: null,
    callId: ANY,
    resultsNamed: false,
    firstCallSigned: false,
    refuse: (what) => json({ error: { message: what, type: "invalid_request_error" } }, 400),
  },
} satisfies Record<string, StrictChat>;

/** What a provider like this answers. */
export function answerOf(strict: StrictChat, request: FakeRequest): Behaviour {
  const body: Loose = request.json();
  const wrong = whatIsWrong(strict, body);
  if (wrong !== null) return strict.refuse(wrong);
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
