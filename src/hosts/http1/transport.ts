import type { TLSOptions } from "bun";
import type { Clock } from "../../units/clock.ts";
import type { Destination, HostCall, HostExchange, Transport } from "../transport.ts";
import { Arrivals } from "./arrivals.ts";
import { endpointOf, type HostEndpoint } from "./endpoint.ts";
import { Http1Exchange } from "./exchange.ts";
import { Pool, type PoolLimits } from "./pool.ts";
import { encodeRequest, headStart } from "./request.ts";

export interface Http1Options {
  readonly clock: Clock;
  /** Called with what an exchange threw; it has ended as `internal`. */
  readonly onFault: (error: unknown) => void;
  /** Name lookup, TCP and TLS together. */
  readonly connectTimeoutMs?: number;
  /**
   * For a host that does not say how long it keeps an idle socket. The servers most often met close theirs
   * after 5 s (Node.js, uvicorn) or later, and one let go too early costs a handshake where one kept too long
   * costs a failed POST.
   */
  readonly idleTimeoutMs?: number;
  readonly maxIdlePerOrigin?: number;
  readonly maxSocketsPerOrigin?: number;
  /** PEM certificates to trust instead of the public roots. */
  readonly ca?: string | readonly string[];
  /** What to connect to instead of what names resolve to. */
  readonly address?: string;
}

/**
 * Our own HTTP/1.1 client on Bun's sockets. `fetch` keeps 64 idle connections per process, hides whether a
 * broken socket was a stale one, and costs more CPU for each streamed event (bench/transport). It neither
 * follows redirects nor repeats a request nor reads proxies from the environment.
 */
export class Http1Transport implements Transport {
  private readonly limits: PoolLimits;
  private readonly arrivals = new Arrivals();
  private readonly pools = new Map<string, Pool>();
  private readonly heads = new WeakMap<Destination, RequestHead>();
  private closed = false;

  constructor(private readonly options: Http1Options) {
    this.limits = {
      connectTimeoutMs: options.connectTimeoutMs ?? 5000,
      idleTimeoutMs: options.idleTimeoutMs ?? 4000,
      maxIdle: options.maxIdlePerOrigin ?? 1024,
      maxSockets: options.maxSocketsPerOrigin ?? 16 * 1024,
    };
  }

  open(call: HostCall): HostExchange {
    const { endpoint, start } = this.headTo(call.to);
    const exchange = new Http1Exchange(encodeRequest(call, start), this.options.clock);
    exchange.begin(this.poolOf(endpoint), call.fresh === true);
    return exchange;
  }

  /** By origin: sockets that an exchange has, where there are any. */
  *socketsInUse(): Generator<readonly [string, number]> {
    for (const [origin, { inUse }] of this.pools) if (inUse !== 0) yield [origin, inUse];
  }

  close(): void {
    this.closed = true;
    for (const pool of this.pools.values()) pool.close();
  }

  private headTo(destination: Destination): RequestHead {
    return this.heads.getOrInsertComputed(destination, () => {
      const endpoint = endpointOf(destination.host);
      return { endpoint, start: headStart(destination, endpoint) };
    });
  }

  private poolOf(endpoint: HostEndpoint): Pool {
    return this.pools.getOrInsertComputed(endpoint.origin, () => {
      this.dropVacantPools();
      const { clock, onFault, address: hostname = endpoint.hostname } = this.options;
      const dialled = { ...endpoint, hostname };
      const pool = new Pool(dialled, this.limits, this.tlsOf(endpoint), clock, this.arrivals, onFault);
      if (this.closed) pool.close();
      return pool;
    });
  }

  /** Origins leave with a reload of the catalog; theirs stay until another origin is met. */
  private dropVacantPools(): void {
    for (const [origin, pool] of this.pools) if (pool.vacant) this.pools.delete(origin);
  }

  private tlsOf(endpoint: HostEndpoint): TLSOptions | null {
    if (!endpoint.secure) return null;
    const { ca } = this.options;
    return {
      serverName: endpoint.hostname,
      rejectUnauthorized: true,
      ALPNProtocols: "http/1.1",
      ...(ca === undefined ? {} : { ca: [ca].flat() }),
    };
  }
}

/** What is the same for all requests to a destination. */
interface RequestHead {
  readonly endpoint: HostEndpoint;
  /** The start of each request's head. */
  readonly start: Uint8Array;
}
