import { Type } from "@sinclair/typebox";
import type { About } from "./about.ts";
import { amountUsd, answerOf, count, namedAnswer, oneOf, orNone, several, time } from "./answers.ts";

/**
 * What the gateway knows, in the shapes that programs made for OpenRouter and LiteLLM read: "Get current API
 * key" and "Get request & usage metadata" of OpenRouter's API reference, and LiteLLM's
 * "/key/info". Members that mean nothing here are null, or what they are where nothing of the kind is there.
 */
const none = Type.Literal(0);
const no = Type.Literal(false);
const rate = Type.Integer({ description: "-1 where there is no limit" });

const CurrentKey = namedAnswer("OpenRouterKey", {
  data: answerOf({
    label: Type.String({ description: "the key's name, or its first characters" }),
    limit: orNone(
      Type.Number({ description: "of the daily and the monthly cap the one with less left, in USD" }),
    ),
    limit_reset: orNone(oneOf(["daily", "monthly"], "which of them it is")),
    limit_remaining: orNone(amountUsd),
    usage: Type.Number({ description: "in this UTC month, in USD: keys are not summed for longer" }),
    usage_daily: amountUsd,
    usage_weekly: orNone(
      Type.Number({
        description:
          "since Monday, of the newest 50,000 requests, in USD; null while too many sums are being computed",
      }),
    ),
    usage_monthly: amountUsd,
    byok_usage: none,
    byok_usage_daily: none,
    byok_usage_weekly: none,
    byok_usage_monthly: none,
    include_byok_in_limit: no,
    is_free_tier: Type.Boolean({ description: "whether the balance was never credited" }),
    is_management_key: no,
    is_provisioning_key: no,
    free_model_daily_requests: answerOf({ limit: count, used: count, remaining: count }),
    creator_user_id: orNone(Type.String({ description: "the account" })),
    organization_id: Type.Null(),
    workspace_id: Type.Null(),
    allowed_data_regions: several(Type.Literal("global")),
    expires_at: orNone(time),
    rate_limit: answerOf({ requests: rate, interval: Type.Literal("1m"), note: Type.String() }),
  }),
});

/** Members of OpenRouter's generation of which nothing is known here. */
const UNKNOWN_MEMBERS = [
  "api_type",
  "app_id",
  "cache_discount",
  "external_user",
  "finish_reason",
  "http_referer",
  "moderation_latency",
  "native_finish_reason",
  "native_tokens_completion_images",
  "num_fetches",
  "num_input_audio_prompt",
  "num_media_completion",
  "num_media_prompt",
  "num_search_results",
  "preset_id",
  "provider_responses",
  "router",
  "service_tier",
  "session_id",
  "upstream_id",
  "upstream_inference_cost",
  "user_agent",
  "web_search_engine",
  "workspace_id",
] as const;
type Unknown<T> = Record<(typeof UNKNOWN_MEMBERS)[number], T>;

/** Each of them with the same value. */
export const unknowns = <T>(value: T) =>
  Object.fromEntries(UNKNOWN_MEMBERS.map((name) => [name, value])) as Unknown<T>;

const GenerationAnswer = namedAnswer("OpenRouterGeneration", {
  data: answerOf({
    ...unknowns(Type.Null()),
    id: Type.String({ description: "of the receipt" }),
    request_id: Type.String(),
    created_at: time,
    model: Type.String({ description: "the one that served, or that was asked for" }),
    provider_name: orNone(Type.String({ description: "the host" })),
    streamed: Type.Boolean(),
    cancelled: Type.Boolean(),
    is_byok: no,
    data_region: Type.Literal("global"),
    origin: Type.Literal(""),
    total_cost: amountUsd,
    usage: amountUsd,
    latency: orNone(Type.Number({ description: "milliseconds to the first token" })),
    generation_time: orNone(Type.Number({ description: "milliseconds to the end" })),
    tokens_prompt: count,
    tokens_completion: count,
    native_tokens_prompt: count,
    native_tokens_completion: count,
    native_tokens_cached: count,
    native_tokens_reasoning: count,
  }),
});

const KeyInfoAnswer = namedAnswer("LiteLLMKey", {
  key: Type.String({ description: "its id: LiteLLM gives a hash" }),
  info: answerOf({
    key_name: Type.String({ description: "its first characters" }),
    key_alias: orNone(Type.String()),
    spend: Type.Number({ description: "in the cap's present window, or this UTC month without one" }),
    max_budget: orNone(
      Type.Number({ description: "of the daily and the monthly cap the one with less left, in USD" }),
    ),
    budget_duration: orNone(oneOf(["1d", "1mo"])),
    budget_reset_at: orNone(time),
    expires: orNone(time),
    models: several(Type.String(), { description: "that it may call; empty for all" }),
    rpm_limit: orNone(count),
    tpm_limit: orNone(count),
    max_parallel_requests: Type.Null(),
    user_id: orNone(Type.String({ description: "the account" })),
    team_id: Type.Null(),
    blocked: Type.Boolean({ description: "whether the balance is suspended" }),
    aliases: answerOf({}),
    config: answerOf({}),
    permissions: answerOf({}),
    metadata: answerOf({}),
    created_at: time,
  }),
});

export const COMPATIBLE = {
  key: {
    summary: "Shows the key that sends this, as OpenRouter does",
    who: ["key"],
    anyOrigin: true,
    act: "be shown here",
    answers: { 200: CurrentKey },
  },
  generation: {
    summary: "Shows what became of a request, as OpenRouter does",
    details: "GET /v1/receipts/{id} says more.",
    who: ["key", "owner"],
    anyOrigin: true,
    query: { id: Type.String({ description: "the answer's header x-gateway-receipt, or x-request-id" }) },
    answers: { 200: GenerationAnswer },
  },
  keyInfo: {
    summary: "Shows the key that sends this, as LiteLLM does",
    who: ["key"],
    act: "be shown here",
    query: { key: Type.String({ description: "the key itself or its id; others are not shown" }) },
    answers: { 200: KeyInfoAnswer },
  },
} as const satisfies Record<string, About>;
