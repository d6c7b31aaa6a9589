import type { Endpoint } from "./endpoint.ts";
import { Reply } from "./reply.ts";

/**
 * Pages of any origin may call the endpoints that an API key is for (CORS): a page that has a key could send it from
 * anywhere else too. Without `access-control-allow-credentials` a browser shows them nothing that it got with a cookie, so
 * the dashboard's session gives no other page anything. Everything else stays closed to them: what an owner's secret or an
 * administrator's is for does not belong into such a page, and what needs neither, as a key's creation, would let any page
 * act for whoever happens to visit it.
 */
export function preflights(endpoints: readonly Endpoint[]): Endpoint[] {
  const open = new Map(endpoints.filter((one) => one.anyOrigin === true).map((one) => [one.path, one]));
  return [...open.values()].map((endpoint) => ({
    ...endpoint,
    method: "OPTIONS",
    handle: () => new Reply(204, undefined, PREFLIGHT),
  }));
}

/** Browsers send `Origin` with every request of a page elsewhere, and other clients hardly ever. */
export const fromAnyOrigin = ({ anyOrigin }: Endpoint, { headers }: Request): boolean =>
  anyOrigin === true && headers.has("origin");

/** Lets the page read the answer. */
export function readable(response: Response): Response {
  response.headers.set("access-control-allow-origin", "*");
  response.headers.set("access-control-expose-headers", EXPOSED);
  return response;
}

/** `*` is every header but `authorization`, which must be named; SDKs send a dozen of their own. */
const PREFLIGHT = {
  "access-control-allow-methods": "GET, POST",
  "access-control-allow-headers": "authorization, *",
  // Browsers remember it for two hours at most.
  "access-control-max-age": "7200",
};

/** What is in our answers beyond what a page may always read. */
const EXPOSED = [
  "x-gateway-receipt",
  "x-gateway-balance-usd",
  "x-gateway-omitted",
  "x-gateway-open-tier-remaining",
  "x-request-id",
  "request-id",
  "retry-after",
  "x-should-retry",
].join(", ");
