import { describe, expect, test } from "bun:test";
import { errorOf, readHostError } from "../../src/surfaces/host-error.ts";
import type { HostError } from "../../src/surfaces/surface.ts";

const read = (body: string) => readHostError(502, Buffer.from(body)).message;

describe("a page instead of an error", () => {
  test.each([
    ["<html><body><h1>502 Bad Gateway</h1></body></html>", "502 Bad Gateway"],
    ["<html><style>h1 > b { color: red }</style><p>Down</p></html>", "Down"],
    ["  <p>Down for <b>maintenance</b>", "Down for maintenance"],
    ["<script>never closed", "status 502 without a message"],
    ["<p", "status 502 without a message"],
  ])("%s says %s", (page, words) => expect(read(page)).toBe(words));

  // By patterns, each of these took time with the square of its length: minutes.
  test.each(["<", "<style", "<script>"])("made of nothing but %s is read in one pass", (piece) => {
    expect(read(piece.repeat(500_000))).toBe("status 502 without a message");
  });
});

test("an error whose code is no text is an error all the same", () => {
  expect(errorOf({ error: { message: "No.", code: { toString: 1 } } }, "")).toMatchObject({ message: "No." });
});

/**
 * What providers were seen to answer. Each is the client's to fix (`request`), or none of the client's
 * business.
 */
const ERRORS: [string, unknown, Partial<HostError>][] = [
  [
    "OpenAI, of a field",
    {
      error: {
        message: "Unsupported parameter: 'max_tokens' is not supported with this model.",
        type: "invalid_request_error",
        param: "max_tokens",
        code: "unsupported_parameter",
      },
    },
    { blames: "request", param: "max_tokens" },
  ],
  [
    "OpenAI, without quota",
    {
      error: {
        message: "You exceeded your current quota, please check your plan and billing details.",
        type: "insufficient_quota",
        param: null,
        code: null,
      },
    },
    { blames: "account" },
  ],
  [
    "Anthropic, without credit",
    {
      type: "error",
      error: {
        type: "invalid_request_error",
        message:
          "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
      },
    },
    { blames: "account" },
  ],
  [
    "Anthropic, at the workspace's limit",
    {
      type: "error",
      error: {
        type: "invalid_request_error",
        message:
          "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
      },
    },
    { blames: "account" },
  ],
  [
    "Anthropic, prompt and ceiling together",
    {
      type: "error",
      error: {
        type: "invalid_request_error",
        message:
          "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again",
      },
    },
    { blames: "request", contextTooLong: true },
  ],
  [
    "Gemini, with a bad key",
    [
      {
        error: {
          code: 400,
          message: "Please pass a valid API key.",
          status: "INVALID_ARGUMENT",
          details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }],
        },
      },
    ],
    { blames: "account" },
  ],
  [
    "Gemini, from where it is not offered",
    [
      {
        error: {
          code: 400,
          message: "User location is not supported for the API use.",
          status: "FAILED_PRECONDITION",
        },
      },
    ],
    { blames: "account" },
  ],
  [
    "Gemini, of a field that it does not know",
    [
      {
        error: {
          code: 400,
          message: 'Invalid JSON payload received. Unknown name "store": Cannot find field.',
          status: "INVALID_ARGUMENT",
        },
      },
    ],
    { blames: "request" },
  ],
  [
    "Gemini, at its rate, with a time to come back",
    [
      {
        error: {
          code: 429,
          message: "You exceeded your current quota. Please retry in 58.934310785s.",
          status: "RESOURCE_EXHAUSTED",
          details: [
            { "@type": "type.googleapis.com/google.rpc.QuotaFailure", violations: [] },
            { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "58.5s" },
          ],
        },
      },
    ],
    { restMs: 58_500 },
  ],
  [
    "xAI, with a bad key",
    {
      code: "Client specified an invalid argument",
      error: "Incorrect API key provided: na***ys. You can obtain an API key from https://console.x.ai.",
    },
    { blames: "account", kept: "an error" },
  ],
  [
    "xAI, too long",
    {
      code: "Client specified an invalid argument",
      error: "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
    },
    { blames: "request", contextTooLong: true },
  ],
  [
    "Groq, more than the account's tokens a minute",
    {
      error: {
        message:
          "Request too large for model `llama-3.1-8b-instant` on tokens per minute (TPM): Limit 6000, Requested 12328",
        type: "tokens",
        code: "rate_limit_exceeded",
      },
    },
    { blames: "host" },
  ],
  [
    "Groq, a call that its model spoilt",
    {
      error: {
        message: "Failed to call a function. Please adjust your prompt.",
        type: "invalid_request_error",
        code: "tool_use_failed",
        failed_generation: "<function=x>",
      },
    },
    { blames: "host" },
  ],
  [
    "Groq, a model that is gone",
    {
      error: {
        message: "The model `qwen-qwq-32b` has been decommissioned and is no longer supported.",
        type: "invalid_request_error",
        code: "model_decommissioned",
      },
    },
    { blames: "host" },
  ],
  [
    "OpenRouter, a model that it does not know",
    { error: { message: "deepseek/deepseek-chat-v4-0324:free is not a valid model ID", code: 400 } },
    { blames: "host" },
  ],
  [
    "Mistral, of a field",
    {
      object: "error",
      message: {
        detail: [
          {
            type: "extra_forbidden",
            loc: ["body", "max_completion_tokens"],
            msg: "Extra inputs are not permitted",
            input: 32_000,
          },
          {
            type: "extra_forbidden",
            loc: ["body", "messages", 3, "assistant", "reasoning_content"],
            msg: "Extra inputs are not permitted",
            input: "a thought",
          },
        ],
      },
      type: "invalid_request_error",
      param: null,
      code: null,
    },
    {
      message:
        "max_completion_tokens: Extra inputs are not permitted; messages.3.assistant.reasoning_content: Extra inputs are not permitted",
      param: "max_completion_tokens",
      kept: "invalid_request_error",
      blames: "request",
    },
  ],
  [
    "FastAPI, of a field",
    { detail: [{ loc: ["body", "model"], msg: "Field required", type: "missing" }] },
    { message: "model: Field required", param: "model", blames: "request" },
  ],
  [
    "Cerebras, of a field",
    {
      message: "body.store: property 'body.store' is unsupported",
      type: "invalid_request_error",
      param: "validation_error",
      code: "wrong_api_format",
    },
    { blames: "request", kept: "wrong_api_format" },
  ],
  [
    "Together, too long",
    { error: { message: "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193." } },
    { contextTooLong: true },
  ],
  [
    "Anthropic, whose organization is disabled",
    {
      type: "error",
      error: { type: "invalid_request_error", message: "This organization has been disabled." },
    },
    { blames: "account" },
  ],
  [
    "OpenAI, before the organization is verified",
    {
      error: {
        message:
          "Your organization must be verified to stream this model. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.",
        type: "invalid_request_error",
        param: "stream",
        code: "unsupported_value",
      },
    },
    { blames: "host" },
  ],
  [
    "Fireworks, with bills to pay",
    {
      error: {
        message:
          "Account acme-ai is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices.",
        param: null,
        code: "PRECONDITION_FAILED",
        type: "error",
      },
    },
    { blames: "account" },
  ],
  [
    "Alibaba, with bills to pay",
    {
      error: {
        code: "Arrearage",
        param: null,
        message: "Access denied, please make sure your account is in good standing.",
        type: "Arrearage",
      },
    },
    { blames: "account" },
  ],
  [
    "Alibaba, too long",
    {
      error: {
        code: "invalid_parameter_error",
        message: "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]",
        type: "invalid_request_error",
      },
    },
    { blames: "request", contextTooLong: true },
  ],
  [
    "Moonshot, too long",
    {
      error: {
        message: "Invalid request: Your request exceeded model token limit: 131072",
        type: "invalid_request_error",
      },
    },
    { contextTooLong: true },
  ],
  [
    "Z.ai, too long",
    { error: { code: "1261", message: "Prompt exceeds max length" } },
    { blames: "request", contextTooLong: true },
  ],
  [
    "Perplexity, of a prompt that is too long",
    { error: { message: "Too many tokens in the request.", type: "too_many_prompt_tokens", code: 400 } },
    { blames: "request", contextTooLong: true },
  ],
  [
    "Gemini, without billing where nothing is free",
    [
      {
        error: {
          code: 400,
          message:
            "Gemini API free tier is not available in your country. Please enable billing on your project in Google AI Studio.",
          status: "FAILED_PRECONDITION",
        },
      },
    ],
    { blames: "account" },
  ],
  [
    "LiteLLM, at the budget of the gateway's key",
    {
      error: {
        message: "Budget has been exceeded! Current cost: 10.2, Max budget: 10.0",
        type: "budget_exceeded",
        param: null,
        code: "400",
      },
    },
    { blames: "account" },
  ],
  [
    "OpenRouter, of what its provider refused",
    {
      error: {
        message: "Provider returned error",
        code: 400,
        metadata: {
          raw: JSON.stringify({
            error: {
              message: "Unsupported value: 'temperature' does not support 0 with this model.",
              type: "invalid_request_error",
              param: "temperature",
              code: "unsupported_value",
            },
          }),
          provider_name: "OpenAI",
        },
      },
      user_id: "user_1",
    },
    {
      message: "Unsupported value: 'temperature' does not support 0 with this model.",
      param: "temperature",
      kept: "unsupported_value",
      blames: "request",
    },
  ],
  [
    "OpenRouter, of a prompt that is too long for its provider",
    {
      error: {
        message: "Provider returned error",
        code: 400,
        metadata: {
          raw: '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}',
          provider_name: "Anthropic",
        },
      },
    },
    { contextTooLong: true, message: "prompt is too long: 208310 tokens > 200000 maximum" },
  ],
  [
    "OpenRouter, whose own account at a provider is empty: that is not the gateway's at OpenRouter",
    {
      error: {
        message: "Provider returned error",
        code: 400,
        metadata: {
          raw: { error: { message: "Your credit balance is too low to access the Anthropic API." } },
          provider_name: "Anthropic",
        },
      },
    },
    { blames: "host" },
  ],
  [
    "OpenRouter, of a provider that says it in words",
    {
      error: {
        message: "Provider returned error",
        code: 400,
        metadata: { raw: "At most 1 image may be sent.", provider_name: "Crucible" },
      },
    },
    { message: "At most 1 image may be sent.", blames: "request" },
  ],
  [
    "OpenRouter, of a provider that says nothing",
    { error: { message: "Provider returned error", code: 400, metadata: { raw: "", provider_name: "X" } } },
    { message: "Provider returned error", blames: "request" },
  ],
];

test.each(ERRORS)("%s", (_provider, body, understood) => {
  expect(readHostError(400, Buffer.from(JSON.stringify(body)))).toMatchObject(understood);
});

test("what a client wrote into a host's sentence does not speak for the host", () => {
  for (const planted of [
    "Your credit balance is too low",
    "API key not valid",
    "Invalid model: x",
    "x is not a valid model ID",
    "This organization has been disabled",
    "Account a is suspended",
  ]) {
    const message = `Invalid value: '${planted}'. Supported values are: 'auto' and 'none'.`;
    expect(errorOf({ error: { message, type: "invalid_request_error" } }, "")).toMatchObject({
      blames: "request",
    });
  }
});

test("of hundreds of wrong fields the first few are reported", () => {
  const detail = Array.from({ length: 500 }, (_, at) => ({ loc: ["body", at], msg: "Bad" }));
  expect(errorOf({ detail }, "").message.split("; ")).toHaveLength(8);
});
