/**
 * The errors table of the specification ("Errors"), as data: the HTTP replies, the errors reference at
 * `/docs/errors` and the tests are all made from it. Codes are stable identifiers.
 */
export type ErrorType = "invalid_request_error" | "api_error" | "rate_limit_error";

export type ErrorCode =
  | "invalid_api_key"
  | "missing_api_key"
  | "insufficient_credit"
  | "unknown_model"
  | "model_unavailable"
  | "auto_unresolvable"
  | "no_free_route"
  | "free_quota_exceeded"
  | "rate_limited"
  | "budget_exhausted"
  | "context_too_long"
  | "payload_too_large"
  | "upstream_error"
  | "request_timeout"
  | "invalid_request"
  | "unsupported_endpoint"
  | "account_suspended"
  | "internal_error";

export interface ErrorRow {
  readonly status: number;
  readonly type: ErrorType;
  /** The identical request may succeed later without a change by the client. If not, `x-should-retry: false` says so. */
  readonly retryable: boolean;
  /** When it happens; a paragraph of the errors reference. */
  readonly when: string;
  /** What the reader should do next; a paragraph of the errors reference. */
  readonly fix: string;
}

export const ERRORS = {
  missing_api_key: {
    status: 401,
    type: "invalid_request_error",
    retryable: false,
    when: "The request carried no bearer token.",
    fix: "Send the header Authorization: Bearer <API_KEY>. Anthropic clients may send x-api-key instead, on /v1/messages, /v1/messages/count_tokens and GET /v1/models.",
  },
  invalid_api_key: {
    status: 401,
    type: "invalid_request_error",
    retryable: false,
    when: "The key is unknown, was revoked, has expired, or is past its grace window after a rotation, by default 24 hours.",
    fix: "Keys begin with or-live-. Create one in the dashboard or with POST /v1/keys. If the key is lost, rotating it with the recovery secret replaces it at once.",
  },
  insufficient_credit: {
    status: 402,
    type: "invalid_request_error",
    retryable: false,
    when: "The balance cannot cover the request. A request that is refused before it is sent costs nothing, and the message names the balance and the worst-case estimate. When a stream stops midway, the message names the cost of the tokens already delivered.",
    fix: "Add credit, or lower max_tokens: the message names the largest value the balance covers. The header x-gateway-balance-usd carries the available balance.",
  },
  unknown_model: {
    status: 404,
    type: "invalid_request_error",
    retryable: false,
    when: "The model id is not in the catalog.",
    fix: "Use a published id in <author>/<name> form from /v1/catalog. The message suggests the closest one.",
  },
  model_unavailable: {
    status: 503,
    type: "api_error",
    retryable: true,
    when: "Every host of the model failed, or none can price the request. The message states how many were tried.",
    fix: "Retry later (after Retry-After seconds, if the header is present), or use one of the alternative models that the message names.",
  },
  auto_unresolvable: {
    status: 503,
    type: "api_error",
    retryable: true,
    when: "Every candidate of the automatic route was unavailable, not allowed on the key, or unable to price the request. The message says why each was skipped.",
    fix: "Retry later, allow one of the candidates on the key, or name a model directly.",
  },
  no_free_route: {
    status: 503,
    type: "api_error",
    retryable: true,
    when: "There is no verified free route right now. The request was not switched to a paid model, and nothing was charged.",
    fix: "Retry later, or name a paid model. Adding credit does not help.",
  },
  free_quota_exceeded: {
    status: 429,
    type: "rate_limit_error",
    retryable: true,
    when: "The day's Open Tier allowance is spent. All keys of the account share it.",
    fix: "Wait until 00:00 UTC, when the allowance resets; Retry-After gives the seconds until then. A new key or added credit does not help.",
  },
  rate_limited: {
    status: 429,
    type: "rate_limit_error",
    retryable: true,
    when: "The key exceeded its requests per minute (rpm_limit) or its estimated tokens per minute (tpm_limit). The message names the limit. Signing in and creating keys are limited per network address.",
    fix: "Send the identical request again after Retry-After seconds, or raise the key's limit in the dashboard.",
  },
  budget_exhausted: {
    status: 429,
    type: "rate_limit_error",
    retryable: true,
    when: "The request could exceed a spend cap: that of a named budget, of its run, or the key's daily_limit_usd or monthly_limit_usd; or its run has had all its calls. The message names the cap and the amount used; amounts held by open requests count too.",
    fix: "Send it again after Retry-After seconds: a few where open requests hold what is left, until the window's end where it is spent. Or lower max_tokens to what the message names, or raise the cap. Where a run has used up its limits, time does not help and there is no Retry-After: start a new run.",
  },
  context_too_long: {
    status: 400,
    type: "invalid_request_error",
    retryable: false,
    when: "The prompt exceeds the model's context. The message states the request's token count and the model's maximum.",
    fix: "Shorten the prompt, or use a model with a larger context.",
  },
  payload_too_large: {
    status: 413,
    type: "invalid_request_error",
    retryable: false,
    when: "The body is larger than the limit, by default 10 MB. It is refused before it is fully read.",
    fix: "Send a smaller body; refer to images and files by URL instead of embedding them.",
  },
  upstream_error: {
    status: 502,
    type: "api_error",
    retryable: true,
    when: "The host failed after streaming began, when no other host can take over.",
    fix: "Send the request again. If few output tokens had been produced, by default fewer than 50, the charge was written off automatically.",
  },
  request_timeout: {
    status: 504,
    type: "api_error",
    retryable: true,
    when: "No host produced a first token in time: by default within 30 seconds, across 3 hosts.",
    fix: "Send the request again, or choose a faster model.",
  },
  invalid_request: {
    status: 400,
    type: "invalid_request_error",
    retryable: false,
    when: "The request is malformed; the message names the field. On the Open Tier it also covers the routing overrides models, provider, route and fallbacks, which are refused and not ignored.",
    fix: "Correct the field that the message names.",
  },
  unsupported_endpoint: {
    status: 400,
    type: "invalid_request_error",
    retryable: false,
    when: "The endpoint is not served: embeddings, for example.",
    fix: "Use /v1/chat/completions, /v1/responses or /v1/messages.",
  },
  account_suspended: {
    status: 403,
    type: "invalid_request_error",
    retryable: false,
    when: "The account was suspended after a chargeback, a sanctions-screening hit, or an acceptable-use breach. The message names which.",
    fix: "Contact the operator of this gateway.",
  },
  internal_error: {
    status: 500,
    type: "api_error",
    retryable: true,
    when: "Something failed inside the gateway. The message gives no detail on purpose.",
    fix: "Retry, and report the receipt id from the header x-gateway-receipt to the operator of this gateway.",
  },
} as const satisfies Record<ErrorCode, ErrorRow>;

export const ERROR_CODES = Object.keys(ERRORS) as ErrorCode[];
