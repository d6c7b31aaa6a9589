import type { Host, SurfaceName } from "../catalog/catalog.ts";
import type { ByRetention, CacheRetention } from "../catalog/price.ts";
import type { Quirks } from "../catalog/quirks.ts";

/**
 * Hosts that an environment variable is enough for. A row is what the provider documents about its API; which
 * models it serves at what price is not here, but in the catalogue packages (model-catalogue).
 */
export interface Preset {
  /** Holds the key; for Ollama, the address. */
  readonly env: string;
  readonly id: string;
  readonly baseUrl: string;
  readonly speaks: readonly SurfaceName[];
  readonly auth: Host["auth"];
  readonly headers?: Readonly<Record<string, string>>;
  /** The provider documents that it charges nothing for a refusal without content. */
  readonly refusals?: Host["refusals"];
  /** It documents `fallbacks`. */
  readonly fallbacks?: Host["fallbacks"];
  readonly quirks?: Quirks;
  /** What holds for some of its models only, by their names on the wire. */
  readonly modelQuirks?: readonly { readonly names: RegExp; readonly quirks: Quirks }[];
  /**
   * How long it keeps what it caches by default, and what longer retentions cost, in inputs; absent: as Anthropic
   * documents, an hour for twice the input.
   */
  readonly retentions?: { readonly own: CacheRetention; readonly longer: ByRetention<number> };
  /** The provider's name in @pydantic/genai-prices. */
  readonly prices: string;
  /**
   * Author of the models, where the host serves its own only: its name in OpenRouter's ids, which others use
   * too.
   */
  readonly author?: string;
  /** The provider's name in llm-zoo, which then says which models there are. */
  readonly zoo?: string;
  /** Every model's name is `<author>/<name>`; others in the list are outdated. */
  readonly namesAuthors?: boolean;
  /** Answers 200 only to a good key, where the list of models is open to everybody. */
  readonly keyPath?: string;
  /** Goes before a model's name on the wire. */
  readonly modelPrefix?: string;
}

const ALL: readonly SurfaceName[] = ["chat.completions", "responses", "messages"];
const CHAT: readonly SurfaceName[] = ["chat.completions"];
const BOTH_OF_OPENAI: readonly SurfaceName[] = ["chat.completions", "responses"];

/** Most speak chat, take the key as a bearer token, and are known to the catalogue by their own name. */
type PresetRow = Omit<Preset, "speaks" | "auth" | "prices"> &
  Partial<Pick<Preset, "speaks" | "auth" | "prices">>;

/** In order of preference: a model that several of them serve is asked of its author first. */
const ROWS: readonly PresetRow[] = [
  {
    env: "OPENAI_API_KEY",
    id: "openai",
    baseUrl: "https://api.openai.com/v1",
    speaks: BOTH_OF_OPENAI,
    // Reasoning models refuse `max_tokens`.
    quirks: { maxCompletionTokens: true },
    modelQuirks: [
      { names: /^(gpt-[34]|chatgpt|gpt-5(\.\d)?-chat|chat-latest)/, quirks: { noReasoningEffort: true } },
      // “This model is only supported in v1/responses and not in v1/chat/completions.” From 5.6 on, the cache matches at marks.
      {
        names: /^gpt-(5\.[6-9]|[6-9]).*-(pro|codex)(-|$)/,
        quirks: { noChat: true, cacheMarks: true, noSampling: true },
      },
      { names: /-(pro|codex)(-|$)|^codex/, quirks: { noChat: true, noSampling: true } },
      {
        names: /^gpt-(5\.[6-9]|[6-9])/,
        quirks: { noChatTools: true, cacheMarks: true, noSampling: true },
      },
      { names: /^gpt-5\.[2-5]/, quirks: { noChatTools: true, noSampling: true } },
      { names: /^(o\d|gpt-5)/, quirks: { noSampling: true } },
    ],
    retentions: { own: "30m", longer: { "12h": 2.5 } },
    author: "openai",
    zoo: "openai",
  },
  {
    env: "ANTHROPIC_API_KEY",
    id: "anthropic",
    baseUrl: "https://api.anthropic.com/v1",
    speaks: ["messages"],
    auth: "x-api-key",
    headers: { "anthropic-version": "2026-10-21" },
    // "Refusals and fallback": a request that is refused before any output is not billed.
    refusals: "free",
    fallbacks: "native",
    // Models up to 4.5 take a budget of thoughts, the later ones only an effort; up to 4.6 a temperature, the
    // later ones none.
    quirks: { adaptiveThinking: true, noSampling: true },
    modelQuirks: [
      {
        names: /^claude-(2|3|instant|(opus|sonnet|haiku)-4(-[015])?(-\d{8})?$)/,
        quirks: { adaptiveThinking: false, noSampling: false },
      },
      { names: /^claude-(opus|sonnet|haiku)-4-6/, quirks: { noSampling: false } },
    ],
    author: "anthropic",
    zoo: "anthropic",
  },
  {
    env: "GEMINI_API_KEY",
    id: "gemini",
    baseUrl: "https://generativelanguage.googleapis.com/v1beta/openai",
    // A tool's result without the tool's name is “an invalid argument”, as is every field that it does not
    // know.
    quirks: { coreFieldsOnly: true, strictMessages: true, namesResults: true },
    // Gemini 3 refuses a tool's result behind a call without its signature.
    modelQuirks: [
      { names: /^(models\/)?gemini-(?![12][.-])/, quirks: { signsCalls: true } },
      { names: /^(models\/)?gemini-(1|2\.0)/, quirks: { noReasoningEffort: true } },
    ],
    prices: "google",
    author: "google",
    zoo: "google",
  },
  {
    env: "MISTRAL_API_KEY",
    id: "mistral",
    baseUrl: "https://api.mistral.ai/v1",
    // Answers 422 to every field that it does not know, such as `stream_options`, and reports usage without
    // being asked. Few of its models take an effort, and those none but `high`.
    quirks: {
      noStreamOptions: true,
      coreFieldsOnly: true,
      strictMessages: true,
      shortCallIds: true,
      noReasoningEffort: true,
    },
    author: "mistralai",
  },
  {
    env: "DEEPSEEK_API_KEY",
    id: "deepseek",
    baseUrl: "https://api.deepseek.com/v1",
    // Its thinking models refuse to go on after a tool's result without their earlier thoughts.
    quirks: { coreFieldsOnly: true, plainContent: true, takesReasoning: true },
    author: "deepseek",
    zoo: "deepseek",
  },
  {
    env: "XAI_API_KEY",
    id: "xai",
    baseUrl: "https://api.x.ai/v1",
    speaks: BOTH_OF_OPENAI,
    // `max_tokens` is deprecated there too.
    quirks: { maxCompletionTokens: true },
    // “Model grok-4 does not support parameter reasoningEffort”, although it reasons
    // (NousResearch/hermes-agent#23435).
    modelQuirks: [
      {
        names: /^grok-(2|3$|3-(?!mini)|4$|4-|4\.20-(?!multi-agent)|code)/,
        quirks: { noReasoningEffort: true },
      },
    ],
    prices: "x-ai",
    author: "x-ai",
    zoo: "xai",
  },
  {
    env: "GROQ_API_KEY",
    id: "groq",
    baseUrl: "https://api.groq.com/openai/v1",
    // Answers 400 to every field that it does not know.
    quirks: { coreFieldsOnly: true, strictMessages: true },
    // Qwen's take `none` and `default` only.
    modelQuirks: [{ names: /^(?!openai\/gpt-oss)/, quirks: { noReasoningEffort: true } }],
  },
  {
    env: "CEREBRAS_API_KEY",
    id: "cerebras",
    baseUrl: "https://api.cerebras.ai/v1",
    // Answers 400 to every field that it does not know.
    quirks: { coreFieldsOnly: true, strictMessages: true },
    modelQuirks: [{ names: /^(?!gpt-oss|zai-glm)/, quirks: { noReasoningEffort: true } }],
  },
  {
    env: "FIREWORKS_API_KEY",
    id: "fireworks",
    baseUrl: "https://api.fireworks.ai/inference/v1",
    quirks: { coreFieldsOnly: true },
    modelPrefix: "accounts/fireworks/models/",
  },
  {
    env: "TOGETHER_API_KEY",
    id: "together",
    baseUrl: "https://api.together.xyz/v1",
    quirks: { coreFieldsOnly: true },
  },
  {
    env: "OPENROUTER_API_KEY",
    id: "openrouter",
    baseUrl: "https://openrouter.ai/api/v1",
    speaks: ALL,
    quirks: { cacheControl: true },
    keyPath: "/key",
    namesAuthors: true,
  },
];

export const PRESETS = ROWS.map((row): Preset => ({ speaks: CHAT, auth: "bearer", prices: row.id, ...row }));

/** The rows whose variable is set, as hosts. */
export function presentPresets(env: Readonly<Record<string, string | undefined>>): Preset[] {
  return PRESETS.filter((preset) => keyOf(preset, env) !== null);
}

export const hostOf = (preset: Preset, env: Readonly<Record<string, string | undefined>>): Host => ({
  id: preset.id,
  baseUrl: preset.baseUrl,
  speaks: preset.speaks,
  apiKey: keyOf(preset, env),
  auth: preset.auth,
  headers: preset.headers ?? {},
  ...(preset.refusals === undefined ? {} : { refusals: preset.refusals }),
  ...(preset.fallbacks === undefined ? {} : { fallbacks: preset.fallbacks }),
  onDisconnect: "cancel",
  quirks: preset.quirks ?? {},
});

/** The quirks of one model where they differ from the host's. */
export function routeQuirks({ quirks = {}, modelQuirks = [] }: Preset, name: string): Quirks | null {
  const own = modelQuirks.find(({ names }) => names.test(name));
  return own === undefined ? null : { ...quirks, ...own.quirks };
}

/** A key copied with its line break, or with the quotes that docker's --env-file keeps, is meant to be the key. */
function keyOf({ env: name }: Preset, env: Readonly<Record<string, string | undefined>>): string | null {
  const key = env[name]?.trim().replace(/^(["'])(.*)\1$/, "$2") ?? "";
  return key === "" ? null : key;
}
