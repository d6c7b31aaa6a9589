import { blameOf, condemns, declines } from "./blame.ts";
import { asObject, asText, type Json, parseJson } from "./json/json.ts";
import type { HostError } from "./surface.ts";

/**
 * What a host of any language said in an answer that is not a 2xx, in whichever of the known shapes: OpenAI and most others `{error: {message,
 * code, param}}`, Anthropic `{type: "error", error: {type, message}}`, Gemini `[{error: {message, status,
 * details}}]`, xAI `{code, error: "…"}`, FastAPI hosts (vLLM) `{detail}` or `{message}`, Mistral `{message:
 * {detail: [{loc, msg}]}}`, llama.cpp `{error: {message, type}}`, Ollama `{error: "…"}`, OpenRouter another
 * host's answer inside its own, proxies a page of HTML.
 */
export function readHostError(status: number, body: Uint8Array): HostError {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8");
  return errorOf(parseJson(text) ?? text, `status ${status} without a message`);
}

/** The same for an error that arrived inside a stream, or with a 200. */
export function errorOf(value: unknown, fallback: string): HostError {
  const error = plainError(value, fallback);
  const provider = providerError(value);
  return provider === null ? error : ofProvider(plainError(provider, fallback), error);
}

function plainError(value: unknown, fallback: string): HostError {
  const first = Array.isArray(value) ? value[0] : value;
  const outer = asObject(first);
  const inner = asObject(outer?.error) ?? outer;
  const wrong = wrongFields(inner);
  const spoken =
    sentence(inner?.message) ??
    sentence(inner?.detail) ??
    sentence(wrong.map(({ name, why }) => `${name}: ${why}`).join("; ")) ??
    sentence(outer?.error) ??
    sentence(first);
  const code = codeOf(inner?.code ?? inner?.type ?? inner?.status);
  const message = spoken ?? (code === "" ? fallback : code);
  const details = asObjects(inner?.details);
  const codes = [
    code,
    codeOf(inner?.type),
    codeOf(asObject(inner?.details)?.error_code),
    ...details.map(({ reason }) => codeOf(reason)),
  ];
  const contextTooLong =
    codes.some((one) => CONTEXT_CODES.has(one)) || CONTEXT_SENTENCES.some((sign) => sign.test(message));
  const blames = blameOf(codes, message);
  const param = typeof inner?.param === "string" && inner.param !== "" ? inner.param : null;
  return {
    message,
    kept: CODE.test(code) ? code : "an error",
    contextTooLong,
    param: param ?? wrong[0]?.name ?? null,
    blames,
    isVerdict: contextTooLong || (blames === "request" && condemns(codes)),
    isPolicy: blames === "request" && declines(codes),
    restMs: restOf(details),
  };
}

/**
 * OpenRouter says “Provider returned error” and no more; what was wrong stands in `error.metadata.raw`, as
 * the provider said it. Null where there is none.
 */
function providerError(value: unknown): unknown {
  const error = asObject(asObject(value)?.error);
  if (error?.message !== PROVIDER_ERROR) return null;
  const raw = asObject(error.metadata)?.raw;
  return typeof raw === "string" ? (parseJson(raw) ?? sentence(raw)) : asObject(raw);
}

const PROVIDER_ERROR = "Provider returned error";

/** An account there is not the gateway's, and the host's other models are served by other providers. */
const ofProvider = (error: HostError, reported: HostError): HostError => ({
  ...error,
  blames: error.blames === "account" ? "host" : error.blames,
  isVerdict: error.isVerdict || (error.blames === "request" && reported.isVerdict),
});

/**
 * What pydantic finds wrong with a body (Mistral, vLLM): its places and sentences, without what stands there.
 */
function wrongFields(error: Json | null): { readonly name: string; readonly why: string }[] {
  const list = error?.detail ?? asObject(error?.message)?.detail ?? error?.message;
  return asObjects(list)
    .slice(0, MAX_WRONG_FIELDS)
    .flatMap(({ loc, msg }) => {
      if (!Array.isArray(loc) || typeof msg !== "string") return [];
      const name = loc.filter((step, at) => at > 0 || step !== "body").map(asText);
      return [{ name: name.join("."), why: msg }];
    });
}

/** Google's `RetryInfo` says in the body what others say by `Retry-After`: `"58s"`, `"3.5s"`. */
function restOf(details: readonly Json[]): number | null {
  for (const { retryDelay } of details) {
    const seconds = typeof retryDelay === "string" ? /^(\d{1,6}(?:\.\d{1,9})?)s$/.exec(retryDelay) : null;
    if (seconds !== null) return Math.ceil(Number(seconds[1]) * 1_000);
  }
  return null;
}

/**
 * What an event without a type says, in a language whose events have one: servers that speak chat first
 * (vLLM, LiteLLM) end streams of every language with chat's `{error: …}`. Null where it says nothing of a
 * failure.
 */
export const untypedError = (data: Readonly<Record<string, unknown>>): HostError | null =>
  data.error === undefined || data.error === null ? null : errorOf(data, "an error without a message");

/** What the gateway itself finds wrong with a host's answer. */
export const fault = (message: string): HostError => ({
  message,
  kept: message,
  contextTooLong: false,
  param: null,
  blames: "host",
  isVerdict: false,
  isPolicy: false,
  restMs: null,
});

export const ENDED_EARLY = fault("the stream ended without its end mark");
export const NO_OBJECT = fault("the answer is not a JSON object");
/** Clients parse every event, and fail with an error of their parser's on one that is none. */
export const NO_EVENT = fault("an event is not a JSON object");

const asObjects = (list: unknown): Json[] =>
  Array.isArray(list) ? list.map(asObject).filter((entry) => entry !== null) : [];

/** No sentence, so nothing of a prompt. */
const CODE = /^[\w.-]{1,64}$/;

/** Longer messages of hosts are cut: they end up in headers of logs and in front of people. */
const MAX_MESSAGE = 1_000;

/** More say the same. */
const MAX_WRONG_FIELDS = 8;

const CONTEXT_CODES = new Set([
  "context_length_exceeded",
  // llama.cpp.
  "exceed_context_size_error",
  // Perplexity.
  "too_many_prompt_tokens",
]);
const CONTEXT_SENTENCES = [
  /prompt is too long/i,
  // xAI; vLLM.
  /maximum (context|prompt|model) length/i,
  /context (length|window|size).{0,40}exceed/i,
  // Anthropic, of prompt and ceiling together: “limit”.
  /exceed\w*.{0,60}context (length|window|size|limit)/i,
  // SGLang.
  /longer than the model's context length/i,
  // Together.
  /`inputs` tokens \+ `max_new_tokens` must be <=/i,
  /input (is|was)? ?too long/i,
  /input token count.{0,60}exceeds/i,
  // Moonshot.
  /exceeded model token limit/i,
  // Z.ai.
  /prompt exceeds max length/i,
  // Alibaba.
  /range of input length should be/i,
];

const codeOf = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" ? String(value) : "";

function sentence(value: unknown): string | null {
  if (typeof value !== "string") return null;
  const plain = value.trimStart().startsWith("<") ? withoutTags(value) : value;
  const clean = plain
    .slice(0, MAX_MESSAGE * 4)
    .replace(/[\u0000-\u001f\u007f]+/g, " ")
    .replace(/ {2,}/g, " ")
    .trim();
  return clean === "" ? null : clean.length > MAX_MESSAGE ? `${clean.slice(0, MAX_MESSAGE)}…` : clean;
}

/**
 * The words of a page, as far as a message may need them. Found step by step: a host may repeat what a client
 * sent, and on sixty kilobytes of `<` a pattern for tags took a second.
 */
function withoutTags(page: string): string {
  let words = "";
  for (let at = 0; words.length < MAX_MESSAGE * 4; ) {
    const open = page.indexOf("<", at);
    if (open === -1) return words + page.slice(at);
    words += `${page.slice(at, open)} `;
    const unread = UNREAD.exec(page.slice(open, open + 8))?.[1];
    const mark = unread === undefined ? ">" : `</${unread}>`;
    const close = page.indexOf(mark, open);
    if (close === -1) return words;
    at = close + mark.length;
  }
  return words;
}

/** Elements whose content is not for people. */
const UNREAD = /^<(style|STYLE|script|SCRIPT)/;
