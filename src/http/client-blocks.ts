import { type Blocks, blocksOf, plain } from "../ledger/limits/address.ts";
import type { HttpDeps } from "./deps.ts";
import type { HttpExchange } from "./exchange.ts";

/**
 * The client's network, as throttles and allowances count it. Somebody who forwards addresses without being
 * trusted is reported: if that is the operator's own proxy, all clients behind it count as one.
 */
export function clientBlocks(
  { address, request: { headers } }: Pick<HttpExchange, "address" | "request">,
  deps: Pick<HttpDeps, "settings" | "untrustedProxy">,
): Blocks {
  const { trustedProxies } = deps.settings();
  if (address !== null && headers.has("x-forwarded-for") && !trustedProxies.has(plain(address)))
    deps.untrustedProxy(plain(address));
  return blocksOf(address, headers, trustedProxies);
}

/** The first few addresses that forward others' without being trusted, each reported once. */
export class UntrustedProxies {
  private readonly seen = new Set<string>();

  constructor(
    private readonly count: (address: string) => void,
    private readonly report: (address: string) => void,
  ) {}

  note(address: string): void {
    const isNew = !this.seen.has(address);
    // Any client can send the header, and must not be able to fill the log.
    if (isNew && this.seen.size >= MAX_PROXIES) return;
    this.seen.add(address);
    this.count(address);
    if (isNew) this.report(address);
  }
}

const MAX_PROXIES = 8;
