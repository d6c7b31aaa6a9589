import type { Feature } from "../api/about.ts";
import { type Refusal, refuse } from "../units/errors/refusal.ts";
import type { Endpoint } from "./endpoint.ts";
import { pathOf } from "./exchange.ts";
import { asksForWebSocket } from "./websocket/upgrade.ts";

/** Why no endpoint was found: another method would do, or the surface is not served. */
export function unknownPath(
  request: Request,
  endpoints: readonly Endpoint[],
  /** What the configuration would have to have for it. */
  lacking?: Feature,
): Misdirected {
  const path = pathOf(request);
  const methods = methodsAt(path, endpoints);
  if (lacking === undefined && methods.length > 0 && !methods.includes(request.method)) {
    const allowed = methods.join(", ");
    if (asksForWebSocket(request)) return noWebSocket(path, allowed);
    const message = `${shown(path)} does not take ${request.method}; it takes ${allowed}.`;
    return { why: refuse("invalid_request", message), headers: { allow: allowed } };
  }
  const message = `${shown(path)} ${whyNotServed(path, request.method, endpoints, lacking)}`;
  return { why: refuse("unsupported_endpoint", message), headers: {} };
}

/** Completes a sentence that begins with the path. */
function whyNotServed(
  path: string,
  method: string,
  endpoints: readonly Endpoint[],
  lacking?: Feature,
): string {
  if (lacking !== undefined) return `is not served: ${LACKING[lacking]}.`;
  // Found by its resolved path, and the router goes by the path as it was sent.
  if (methodsAt(path, endpoints).includes(method))
    return "is served only when it is requested exactly so, without `..` or a fragment.";
  const unslashed = withoutSlashes(path);
  if (methodsAt(unslashed, endpoints).includes(method))
    return `is not served, but ${shown(unslashed)} is: leave out the slash at the end.`;
  if (COMPLETIONS.test(path)) return NO_COMPLETIONS;
  const isWithoutV1 = methodsAt(`/v1${path}`, endpoints).includes(method);
  const meant = isWithoutV1 ? `/v1${path}` : endOf(path, method, endpoints);
  const how = path.includes("//") ? "without a slash at its end" : "directly after this gateway's address";
  return meant === null
    ? "is not served. Text generation is at /v1/chat/completions, /v1/responses and /v1/messages; GET /llms.txt tells what else there is."
    : `is not served, but ${shown(meant)} is: make the client's base URL end in \`/v1\`, ${how}.`;
}

const LACKING: Readonly<Record<Feature, string>> = {
  payments: "this gateway takes no payments; its operator adds credit",
  "payments.stripe": "this gateway takes no cards",
  "receipts.sign": "this gateway does not sign receipts",
};

/**
 * Codex tries WebSocket first. After 426 it goes on over HTTP at once, after other statuses only in seconds,
 * and after 400 never.
 */
function noWebSocket(path: string, allowed: string): Misdirected {
  const message = `${shown(path)} is not served over WebSocket; send the request with ${allowed}.`;
  return {
    why: refuse("unsupported_endpoint", message, { status: 426, upgrade: "HTTP/1.1" }),
    headers: { allow: allowed },
  };
}

/** OpenAI's older way to generate text, which many tools still have as a setting. */
const COMPLETIONS = /^(\/api)?(\/v1)*\/completions\/?$/;

const NO_COMPLETIONS =
  'is not served: it takes a `prompt`, which few models still complete. Send POST /v1/chat/completions, with the prompt as `"messages": [{"role": "user", "content": "…"}]`; tools call this their chat API. /v1/responses and /v1/messages are served, too.';

export interface Misdirected {
  readonly why: Refusal;
  readonly headers: Readonly<Record<string, string>>;
}

function methodsAt(path: string, endpoints: readonly Endpoint[]): string[] {
  // Anybody may ask for a path of thousands of parts.
  const parts = path.split("/", MAX_PARTS);
  return [...new Set(endpoints.filter((one) => matches(one.path, parts)).map(({ method }) => method))];
}

/** More than any endpoint has. */
const MAX_PARTS = 16;

/** Counted from the end: a pattern would begin at each slash, and see where those that follow end. */
function withoutSlashes(path: string): string {
  let end = path.length;
  while (path.endsWith("/", end) && end > 0) end -= 1;
  return path.slice(0, end);
}

/**
 * The endpoint that a path ends in. Base URLs come with a slash at their end, with the endpoint in them, or
 * with what other services have before `/v1`.
 */
function endOf(path: string, method: string, endpoints: readonly Endpoint[]): string | null {
  const plain = path.replace(/\/{2,}/g, "/").replace(/\/$/, "");
  let longest: string | null = null;
  for (const endpoint of endpoints) {
    if (endpoint.method !== method || !ENDPOINT.test(endpoint.path)) continue;
    const isEnd = plain.endsWith(endpoint.path.slice("/v1".length));
    if (isEnd && endpoint.path.length > (longest?.length ?? 0)) longest = endpoint.path;
  }
  return longest;
}

/** Without parameters, and not the alias of another. */
const ENDPOINT = /^\/v1\/(?!v1\/)[^:]*$/;

function matches(pattern: string, given: readonly string[]): boolean {
  const segments = pattern.split("/");
  return (
    segments.length === given.length &&
    segments.every((part, index) => part.startsWith(":") || part === given[index])
  );
}

const MAX_SHOWN = 100;

const shown = (path: string): string =>
  `\`${path.length > MAX_SHOWN ? `${path.slice(0, MAX_SHOWN)}…` : path}\``;
