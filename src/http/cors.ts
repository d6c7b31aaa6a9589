import type { Endpoint } from "./endpoint.ts";
import { JsonReply } from "./reply.ts";

/**
 * Pages of any origin may call the endpoints that take an API key (CORS): a program with a key could send it
 * from anywhere anyway. Without `access-control-allow-credentials`, browsers withhold answers obtained with a
 * cookie, so the dashboard's session is of no use to other pages. All other endpoints stay closed to them:
 * owners' and operators' secrets do not belong in such pages, and endpoints that need no secret, such as
 * creating a key, would let any page act for its visitors.
 */
export function preflights(endpoints: readonly Endpoint[]): Endpoint[] {
  const open = Map.groupBy(
    endpoints.filter(({ about }) => about.anyOrigin === true),
    ({ path }) => path,
  );
  return [...open.values()].map((those) => {
    const methods = those.map(({ method }) => method).join(", ");
    const headers = { ...PREFLIGHT, "access-control-allow-methods": methods };
    return { ...those[0]!, method: "OPTIONS", handle: () => new JsonReply(204, undefined, headers) };
  });
}

/** Browsers send `Origin` with every request of a page elsewhere, and other clients hardly ever. */
export const fromAnyOrigin = ({ about }: Endpoint, { headers }: Request): boolean =>
  about.anyOrigin === true && headers.has("origin");

/** Lets the page read the answer and our headers. */
export function readable(response: Response): Response {
  response.headers.set("access-control-allow-origin", "*");
  response.headers.set("access-control-expose-headers", EXPOSED);
  return response;
}

/** `*` covers every header except `authorization`, which must be named; SDKs send a dozen of their own. */
const PREFLIGHT = {
  "access-control-allow-headers": "authorization, *",
  // Browsers remember it for at most two hours.
  "access-control-max-age": "7200",
};

/** Headers of ours that a page may not read by default. */
const EXPOSED = [
  "x-gateway-receipt",
  "x-gateway-balance-usd",
  "x-gateway-omitted",
  "x-gateway-model",
  "x-gateway-declined",
  "x-gateway-open-tier-remaining",
  "idempotent-replayed",
  "x-request-id",
  "request-id",
  "payment-required",
  "payment-response",
  "retry-after",
  "x-should-retry",
].join(", ");
