import type { SurfaceName } from "../../catalog/catalog.ts";
import type { Quirks } from "../../catalog/quirks.ts";
import { PRESETS, type Preset } from "../../config/provider-presets.ts";

/** Who serves a model, as far as another gateway's name for it tells. */
export interface Provider {
  /** The host gets this id. */
  readonly id: string;
  /** What is known of the provider and its models; null: nothing. */
  readonly preset: Preset | null;
  /** With the path of its API; null where each customer has one. */
  readonly address: string | null;
  /** What an address in the source lacks. */
  readonly path: string;
  /** The variable that its key is in by custom. */
  readonly env: string | null;
  readonly speaks: readonly SurfaceName[];
  readonly auth: Preset["auth"];
  /** A header that takes the key, in place of `auth`. */
  readonly keyHeader: string | null;
  readonly quirks: Quirks;
  /** Models that somebody runs by themselves, which cost what their owner says. */
  readonly isOwn: boolean;
}

const CHAT: readonly SurfaceName[] = ["chat.completions"];

const ofPreset = (id: string, path: string): Provider => {
  const preset = PRESETS.find((one) => one.id === id)!;
  const { baseUrl, env, speaks, auth, quirks = {} } = preset;
  return { id, preset, address: baseUrl, path, env, speaks, auth, keyHeader: null, quirks, isOwn: false };
};

const compatible = (id: string, address: string, env: string): Provider => ({
  ...own(id, null),
  address,
  path: "",
  env,
  isOwn: false,
});

const own = (id: string, address: string | null): Provider => ({
  id,
  preset: null,
  address,
  path: "/v1",
  env: null,
  speaks: CHAT,
  auth: "bearer",
  keyHeader: null,
  quirks: {},
  isOwn: true,
});

const AZURE: Provider = {
  ...own("azure", null),
  path: "/openai/v1",
  env: "AZURE_API_KEY",
  speaks: ["chat.completions", "responses"],
  keyHeader: "api-key",
  quirks: { maxCompletionTokens: true },
  isOwn: false,
};

export const OPENAI = ofPreset("openai", "/v1");
const OLLAMA = own("ollama", "http://localhost:11434/v1");

/** An address of somebody's own, where OpenAI's chat is spoken. */
export const ownHost = (id: string): Provider => own(id, null);

/** By the first part of a model's name in LiteLLM's list. */
export const LITELLM_PROVIDERS: Readonly<Record<string, Provider>> = {
  openai: OPENAI,
  anthropic: ofPreset("anthropic", "/v1"),
  azure: AZURE,
  gemini: ofPreset("gemini", "/v1beta/openai"),
  mistral: ofPreset("mistral", ""),
  deepseek: ofPreset("deepseek", ""),
  xai: ofPreset("xai", ""),
  groq: ofPreset("groq", ""),
  cerebras: ofPreset("cerebras", ""),
  fireworks_ai: ofPreset("fireworks", ""),
  together_ai: ofPreset("together", ""),
  openrouter: ofPreset("openrouter", ""),
  perplexity: compatible("perplexity", "https://api.perplexity.ai", "PERPLEXITY_API_KEY"),
  deepinfra: compatible("deepinfra", "https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
  nvidia_nim: compatible("nvidia", "https://integrate.api.nvidia.com/v1", "NVIDIA_NIM_API_KEY"),
  moonshot: compatible("moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
  dashscope: compatible(
    "dashscope",
    "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    "DASHSCOPE_API_KEY",
  ),
  zai: compatible("zai", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
  ollama: OLLAMA,
  ollama_chat: OLLAMA,
  hosted_vllm: { ...ownHost("vllm"), path: "" },
  vllm: { ...ownHost("vllm"), path: "" },
  lm_studio: { ...ownHost("lm-studio"), path: "" },
  llamafile: { ...ownHost("llamafile"), path: "" },
  xinference: { ...ownHost("xinference"), path: "" },
  openai_like: { ...ownHost("own"), path: "" },
  custom_openai: { ...ownHost("own"), path: "" },
  litellm_proxy: { ...ownHost("litellm"), path: "" },
};

/** Why models of a provider cannot be served. */
export const NOT_SERVED: Readonly<Record<string, string>> = {
  bedrock:
    "Bedrock's own language, signed with keys of AWS, is not spoken here; its OpenAI endpoint takes a Bedrock API key and can be a host (`base_url`, `api_key`)",
  bedrock_converse: "Bedrock's own language, signed with keys of AWS, is not spoken here",
  sagemaker: "SageMaker's own language, signed with keys of AWS, is not spoken here",
  vertex_ai:
    "Vertex AI wants tokens that end after an hour, which are not made here; Gemini's models are served with GEMINI_API_KEY",
  vertex_ai_beta: "Vertex AI wants tokens that end after an hour, which are not made here",
};

/** By the number of a channel's type in new-api. */
export const NEW_API_PROVIDERS: Readonly<Record<number, Provider>> = {
  1: OPENAI,
  3: AZURE,
  4: OLLAMA,
  8: { ...ownHost("own"), path: "" },
  14: LITELLM_PROVIDERS.anthropic!,
  20: { ...LITELLM_PROVIDERS.openrouter!, path: "/v1" },
  24: LITELLM_PROVIDERS.gemini!,
  25: compatible("moonshot", "https://api.moonshot.cn/v1", "MOONSHOT_API_KEY"),
  26: compatible("zhipu", "https://open.bigmodel.cn/api/paas/v4", "ZHIPU_API_KEY"),
  27: LITELLM_PROVIDERS.perplexity!,
  40: compatible("siliconflow", "https://api.siliconflow.cn/v1", "SILICONFLOW_API_KEY"),
  42: { ...LITELLM_PROVIDERS.mistral!, path: "/v1" },
  43: { ...LITELLM_PROVIDERS.deepseek!, path: "/v1" },
  47: ownHost("xinference"),
  48: { ...LITELLM_PROVIDERS.xai!, path: "/v1" },
};

/** An address as a host's row has it: without a slash at its end, and with the path that the source leaves out. */
export function addressOf(written: string, { path }: Pick<Provider, "path">): string {
  const reference = /^os\.environ\/([A-Za-z_][A-Za-z0-9_]*)$/.exec(written)?.[1];
  const base = (reference === undefined ? written : `\${${reference}}`)
    .replace(/\/+$/, "")
    .replace(/\/(chat\/completions|responses|messages)$/, "");
  return base.endsWith(path) || (path === "/v1" && /\/v\d+(beta)?(\/openai)?$/.test(base))
    ? base
    : base + path;
}
