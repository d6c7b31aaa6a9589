/**
 * Whom a host's error blames. Statuses tell less than they should: providers say 400 to a key that is wrong
 * or has no credit, to a model that they have given up, and to an answer that their model spoilt. None of
 * that is about the client's request: returned as such, it would be the client's to fix, and no other host
 * would be tried.
 *
 * Sentences count from their beginning only. Hosts repeat in them what a client sent (“Invalid value: '…'”),
 * and nobody may speak for a host.
 */
export function blameOf(codes: readonly string[], message: string): Blame {
  if (codes.some((code) => ACCOUNT_CODES.has(code)) || begins(message, ACCOUNT_SENTENCES)) return "account";
  if (codes.some((code) => HOST_CODES.has(code)) || begins(message, HOST_SENTENCES)) return "host";
  return "request";
}

/** `account`: the gateway's, at that host; all of the host's models are concerned. */
export type Blame = "request" | "host" | "account";

/**
 * OpenAI ("Error codes"), Google (`google.rpc.ErrorInfo`), Moonshot, Alibaba, LiteLLM, OpenAI's like; Anthropic's
 * `error.details.error_code`.
 */
const ACCOUNT_CODES: ReadonlySet<string> = new Set([
  "insufficient_quota",
  "billing_hard_limit_reached",
  "billing_not_active",
  "invalid_api_key",
  "exceeded_current_quota_error",
  "API_KEY_INVALID",
  "Arrearage",
  "budget_exceeded",
  "credit_balance_exhausted",
  "usage_limit_exceeded",
  "project_spend_limit_exceeded",
  "organization_spend_limit_exceeded",
  "organization_usage_limit_exceeded",
  // The key's project is kept in another region than the host's address.
  "data_residency_mismatch",
  "billing_error",
  "contract_spend_limit_reached",
  "enforced_spend_limit_reached",
  "organization_on_hold",
  "organization_type_not_supported",
  "cmek_context_unavailable",
  "cmek_key_disabled",
  "cmek_key_network_blocked",
  "cmek_key_unreachable",
]);

/**
 * Such errors have statuses that would mean the request: Anthropic, Google and xAI answer 400, xAI also 403 and 429, and
 * Fireworks 412.
 */
const ACCOUNT_SENTENCES: readonly RegExp[] = [
  /^your credit balance is too low/i,
  /^you have reached your specified (workspace )?api usage limits/i,
  /^this organization has been disabled/i,
  /^api key (not valid|expired)/i,
  /^incorrect api key provided/i,
  /^user location is not supported/i,
  /^gemini api free tier is not available/i,
  /^your team .{0,80}(used all available credits|spending limit)/i,
  /^account [\w.-]{1,80} is suspended/i,
];

/**
 * Groq: 413 for what exceeds the account's tokens a minute, 498 for want of capacity, 400 for calls and JSON
 * that the model spoilt and for models that are gone. Mistral and others: 400 for a model that they do not
 * know, whose name is the route's, not the client's. OpenAI, Anthropic: want of capacity.
 */
const HOST_CODES: ReadonlySet<string> = new Set([
  "rate_limit_exceeded",
  "capacity_exceeded",
  "tool_use_failed",
  "json_validate_failed",
  "model_not_found",
  "model_not_available",
  "model_decommissioned",
  "invalid_model",
  "flex_unavailable",
  "server_overloaded",
  "compaction_unavailable",
]);

/** Mistral, DeepSeek, OpenRouter; OpenAI, whose other models need no verification. */
const HOST_SENTENCES: readonly RegExp[] = [
  /^invalid model:/i,
  /^model not exist/i,
  /^[\w./:@-]+ is not a valid model id$/i,
  /^your organization must be verified/i,
];

/**
 * Whether a host's code alone, where no status tells, is one for a request that is wrong. A status among the
 * codes has the last word.
 */
export function condemns(codes: readonly string[]): boolean {
  const status = codes.find((code) => /^[1-5]\d\d$/.test(code));
  if (status !== undefined) return REQUEST_STATUSES.has(status);
  return codes.some((code) => REQUEST_CODES.has(code)) || declines(codes);
}

/** Whether a host will not answer the request for policy reasons, and says so as an error. */
export const declines = (codes: readonly string[]): boolean => codes.some((code) => POLICY_CODES.has(code));

/** OpenAI (Responses' `error.code`, "Agents"), Azure ("Content filtering"), Alibaba. */
const POLICY_CODES: ReadonlySet<string> = new Set([
  "bio_policy",
  "cyber_policy",
  "misalignment_policy_violation",
  "image_content_policy_violation",
  "content_policy_violation",
  "content_filter",
  "data_inspection_failed",
]);

/** OpenAI and Anthropic; OpenAI's Responses ("The response object", `error.code`); vLLM. */
const REQUEST_CODES: ReadonlySet<string> = new Set([
  "invalid_request_error",
  "request_too_large",
  "invalid_prompt",
  "invalid_image",
  "invalid_image_format",
  "invalid_base64_image",
  "invalid_image_url",
  "invalid_image_mode",
  "image_too_large",
  "image_too_small",
  "image_parse_error",
  "image_file_too_large",
  "image_file_not_found",
  "unsupported_image_media_type",
  "empty_image_file",
  "failed_to_download_image",
  "BadRequestError",
]);

const REQUEST_STATUSES: ReadonlySet<string> = new Set(["400", "413", "415", "422"]);

const begins = (message: string, sentences: readonly RegExp[]): boolean =>
  sentences.some((sentence) => sentence.test(message));
