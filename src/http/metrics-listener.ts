import { isLoopback } from "../ledger/limits/address.ts";
import { newReceiptId } from "../units/id.ts";
import type { HttpDeps } from "./deps.ts";
import type { ListenAddress } from "./listen-address.ts";

/**
 * Serves the metrics without a token on an address of their own (`metrics` in the configuration). On the address that
 * clients reach, nothing tells a scraper on this machine from a stranger behind a proxy on it.
 */
export function listenMetrics(
  deps: HttpDeps,
  { hostname, port, shared }: ListenAddress,
): Bun.Server<undefined> {
  const isPrivate = isLoopback(hostname);
  return Bun.serve({
    hostname,
    port,
    reusePort: shared,
    development: false,
    fetch({ url, method, headers }) {
      // A page can make a browser on this machine ask a loopback address under the page's own name.
      if (isPrivate && !LOOPBACK_HOST.test(headers.get("host") ?? "")) return plainText("forbidden", 403);
      if (method !== "GET" || !/^[^?]*\/metrics(\?|$)/.test(url)) return plainText("not found", 404);
      return metricsResponse(deps);
    },
    error(failure) {
      const { clock, random } = deps;
      deps.onFault(failure, newReceiptId(clock.now(), random));
      return plainText("internal error", 500);
    },
  });
}

export async function metricsResponse({ processes }: Pick<HttpDeps, "processes">): Promise<Response> {
  return new Response(await processes.metrics(), {
    headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8", "cache-control": "no-store" },
  });
}

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

const plainText = (text: string, status: number): Response =>
  new Response(`${text}\n`, { status, headers: { "content-type": "text/plain; charset=utf-8" } });
