import { Type } from "@sinclair/typebox";
import type { About } from "./about.ts";
import * as t from "./schema.ts";

/**
 * What the gateway knows, in the shapes that programs made for OpenRouter and LiteLLM read: "Get current API
 * key" and "Get request & usage metadata" of OpenRouter's API reference, and LiteLLM's
 * "/key/info". Members that mean nothing here are null, or what they are where nothing of the kind is there.
 */
const none = Type.Literal(0);
const no = Type.Literal(false);
const rate = t.integer("-1 where there is no limit");

const CurrentKey = t.namedAnswer("OpenRouterKey", {
  data: t.object({
    label: t.string("the key's name, or its first characters"),
    limit: t.orNone(t.number("of the daily and the monthly cap the one with less left, in USD")),
    limit_reset: t.orNone(t.oneOf(["daily", "monthly"], "which of them it is")),
    limit_remaining: t.orNone(t.amountUsd),
    usage: t.number("in this UTC month, in USD: keys are not summed for longer"),
    usage_daily: t.amountUsd,
    usage_weekly: t.orNone(
      t.number(
        "since Monday, of the newest 50,000 requests, in USD; null while too many sums are being computed",
      ),
    ),
    usage_monthly: t.amountUsd,
    byok_usage: none,
    byok_usage_daily: none,
    byok_usage_weekly: none,
    byok_usage_monthly: none,
    include_byok_in_limit: no,
    is_free_tier: t.boolean("whether the balance was never credited"),
    is_management_key: no,
    is_provisioning_key: no,
    free_model_daily_requests: t.object({ limit: t.count, used: t.count, remaining: t.count }),
    creator_user_id: t.orNone(t.string("the account")),
    organization_id: Type.Null(),
    workspace_id: Type.Null(),
    allowed_data_regions: t.several(Type.Literal("global")),
    expires_at: t.orNone(t.time),
    rate_limit: t.object({ requests: rate, interval: Type.Literal("1m"), note: Type.String() }),
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

const GenerationAnswer = t.namedAnswer("OpenRouterGeneration", {
  data: t.object({
    ...unknowns(Type.Null()),
    id: t.string("of the receipt"),
    request_id: Type.String(),
    created_at: t.time,
    model: t.string("the one that served, or that was asked for"),
    provider_name: t.orNone(t.string("the host")),
    streamed: Type.Boolean(),
    cancelled: Type.Boolean(),
    is_byok: no,
    data_region: Type.Literal("global"),
    origin: Type.Literal(""),
    total_cost: t.amountUsd,
    usage: t.amountUsd,
    latency: t.orNone(t.number("milliseconds to the first token")),
    generation_time: t.orNone(t.number("milliseconds to the end")),
    tokens_prompt: t.count,
    tokens_completion: t.count,
    native_tokens_prompt: t.count,
    native_tokens_completion: t.count,
    native_tokens_cached: t.count,
    native_tokens_reasoning: t.count,
  }),
});

const KeyInfoAnswer = t.namedAnswer("LiteLLMKey", {
  key: t.string("its id: LiteLLM gives a hash"),
  info: t.object({
    key_name: t.string("its first characters"),
    key_alias: t.orNone(Type.String()),
    spend: t.number("in the cap's present window, or this UTC month without one"),
    max_budget: t.orNone(t.number("of the daily and the monthly cap the one with less left, in USD")),
    budget_duration: t.orNone(t.oneOf(["1d", "1mo"])),
    budget_reset_at: t.orNone(t.time),
    expires: t.orNone(t.time),
    models: t.several(Type.String(), { description: "that it may call; empty for all" }),
    rpm_limit: t.orNone(t.count),
    tpm_limit: t.orNone(t.count),
    max_parallel_requests: Type.Null(),
    user_id: t.orNone(t.string("the account")),
    team_id: Type.Null(),
    blocked: t.boolean("whether the balance is suspended"),
    aliases: t.object({}),
    config: t.object({}),
    permissions: t.object({}),
    metadata: t.object({}),
    created_at: t.time,
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
    query: { id: t.string("the answer's header x-gateway-receipt, or x-request-id") },
    answers: { 200: GenerationAnswer },
  },
  keyInfo: {
    summary: "Shows the key that sends this, as LiteLLM does",
    who: ["key"],
    act: "be shown here",
    query: { key: t.string("the key itself or its id; others are not shown") },
    answers: { 200: KeyInfoAnswer },
  },
} as const satisfies Record<string, About>;
