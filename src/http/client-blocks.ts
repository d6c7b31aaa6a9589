import { type Blocks, blocksOf, plain } from "../ledger/limits/address.ts";
import type { HttpDeps } from "./deps.ts";
import type { HttpExchange } from "./exchange.ts";

/**
 * The client's network, as throttles and allowances count it. Somebody who forwards addresses without being
 * trusted is reported: if that is the operator's own proxy, all clients behind it count as one.
 */
export function clientBlocks(
  { address, request }: Pick<HttpExchange, "address" | "request">,
  deps: Pick<HttpDeps, "config" | "untrustedProxies">,
): Blocks {
  const { trustedProxies } = deps.config.settings;
  const { headers } = request;
  if (address !== null && headers.has("x-forwarded-for") && !trustedProxies.has(plain(address)))
    deps.untrustedProxies.note(plain(address), request);
  return blocksOf(address, headers, trustedProxies);
}
