import { pathOf } from "../exchange.ts";

/** Where a page is whose address was typed a little differently; null for every other request. */
export function movedPage(request: Request): Response | null {
  const { method } = request;
  const location = method === "GET" || method === "HEAD" ? MOVED.get(pathOf(request)) : undefined;
  return location === undefined ? null : new Response(null, { status: 308, headers: { location } });
}

/** Relative, because the gateway may be mounted beneath a path. */
const MOVED = new Map([
  ["/dashboard/", "../dashboard"],
  ["/admin/", "../admin"],
  ["/status/", "../status"],
  ["/docs", "docs/api"],
  ["/docs/", "api"],
  ["/docs/api/", "../api"],
  ["/docs/errors/", "../errors"],
]);
