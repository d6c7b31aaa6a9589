import { asObject } from "../json/json.ts";
import type { GenerationRequest, HostTarget } from "../surface.ts";
import { FIELDS } from "../vocabulary/fields.ts";
import type { BodyChanges } from "./body-changes.ts";

/**
 * Leaves out, and names, what some servers obey although no language has it: where they send the request and
 * with whose credentials, which code and templates they run for it, and how they treat other people's. For a
 * host of another language only what is known is written, so nothing of this arrives there. With
 * `quirks.known_fields_only`, whatever this gateway does not know is left out, too.
 */
export function leaveOutUnsafe(
  { surface, json }: Pick<GenerationRequest, "surface" | "json">,
  { quirks }: Pick<HostTarget, "quirks">,
  changes: BodyChanges,
): void {
  const known = FIELDS[surface];
  for (const name in json) {
    const isUnsafe =
      (isSteering(name) && !(surface === "messages" && name === CREDIT_TOKEN)) ||
      (TEMPLATE_SETTINGS.has(name) && !isHarmless(json[name]));
    const isUnknown = quirks.knownFieldsOnly === true && !Object.hasOwn(known, name);
    if (!(isUnsafe || isUnknown || (name === "metadata" && steers(json[name])))) continue;
    changes.drop(name, json[name]);
  }
}

/** Anthropic's proof that another model of its declined the same request ("Fallback credit"). */
const CREDIT_TOKEN = "fallback_credit_token";

const isSteering = (name: string): boolean => STEERING.has(name) || ADDRESS.test(name) || LITELLM.test(name);

/**
 * Addresses and credentials, by how their names end or begin: LiteLLM takes two dozen of them from a request
 * (CVE-2024-6587; its own list is `_BANNED_REQUEST_BODY_PARAMS`), and more with each vendor that it learns.
 */
const ADDRESS =
  /(^|_)(api_base|url|uri|host|hostname|port|endpoint|proxy|api_key|public_key|api_version|api_type|access_key|access_key_id|secret|secret_key|credentials?|token|password|auth|authorization|role_name)$|^(mock|bootstrap)_/;
/** What LiteLLM reads from the labels of a request as well as from the request. */
const LITELLM =
  /^(litellm|aws|vertex|azure|sagemaker|watsonx|s3|gcs|langfuse|langsmith|langtrace|posthog|phoenix|arize|wandb|weave|humanloop|braintrust|datadog|otel)_|^(api_base|base_url|api_key|user_config)$/;

const STEERING = new Set([
  // LiteLLM: other models, accounts and headers, answers without a model, calls that are repeated or cached.
  "custom_llm_provider",
  "model_list",
  "organization",
  "project",
  "headers",
  "extra_headers",
  "extra_query",
  "num_retries",
  "max_retries",
  "cache",
  "caching",
  "callbacks",
  "success_callback",
  "failure_callback",
  "guardrails",
  "proxy_server_request",
  "secret_fields",
  "no-log",
  // vLLM and SGLang: templates that run for a request (CVE-2025-61620), code and adapters by their name or
  // pickled, places of other servers, turns before other people's.
  "chat_template",
  "logits_processors",
  "custom_logit_processor",
  "custom_params",
  "kv_transfer_params",
  "lora_path",
  "lora_request",
  "session_params",
  "data_parallel_rank",
  "mm_processor_kwargs",
  "media_io_kwargs",
  "vllm_xargs",
  "input_embeds",
  "return_hidden_states",
  "priority",
  "request_id",
  "rid",
  // llama.cpp and Ollama: adapters, another request's cache, how long a model keeps the memory.
  "lora",
  "slot_id",
  "id_slot",
  "keep_alive",
  "options",
]);

/** vLLM's and SGLang's, and Dynamo's. */
const TEMPLATE_SETTINGS = new Set(["chat_template_kwargs", "chat_template_args"]);

/** Plain settings of a model's own template, as clients send them to turn thinking off (CVE-2025-62426). */
function isHarmless(settings: unknown): boolean {
  const object = asObject(settings);
  if (object === null) return settings === null;
  for (const name in object) {
    const value = object[name];
    if (OF_THE_TOKENIZER.has(name) || (typeof value === "object" && value !== null)) return false;
  }
  return true;
}

/** Arguments of `apply_chat_template` itself (transformers). */
const OF_THE_TOKENIZER = new Set([
  "chat_template",
  "conversation",
  "tools",
  "documents",
  "tokenize",
  "add_generation_prompt",
  "continue_final_message",
  "padding",
  "truncation",
  "max_length",
  "return_tensors",
  "return_dict",
  "return_assistant_tokens_mask",
  "tokenizer_kwargs",
]);

/** LiteLLM reads addresses of logging services from there, too. */
function steers(metadata: unknown): boolean {
  const object = asObject(metadata);
  if (object === null) return false;
  for (const name in object) if (LITELLM.test(name)) return true;
  return false;
}
