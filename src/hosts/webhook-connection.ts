import type { Clock } from "../units/clock.ts";
import { Arrivals } from "./http1/arrivals.ts";
import { endpointOf } from "./http1/endpoint.ts";
import { Http1Exchange } from "./http1/exchange.ts";
import { Pool } from "./http1/pool.ts";
import { encodeRequest, headStart } from "./http1/request.ts";
import { HostFault } from "./transport.ts";

/**
 * An address that is posted to, one request after another on one connection. Redirects are not followed, and no proxy is
 * read from the environment.
 */
export class WebhookConnection {
  private readonly pool: Pool;
  private readonly start: Uint8Array;
  private readonly timeoutMs: number;

  constructor(
    url: string,
    private readonly clock: Clock,
    onFault: (error: unknown) => void,
    { ca = null, address = null, timeoutMs = TIMEOUT_MS }: WebhookConnectionOptions = {},
  ) {
    this.timeoutMs = timeoutMs;
    const endpoint = endpointOf({ id: "webhook", baseUrl: url });
    const limits = { connectTimeoutMs: timeoutMs, idleTimeoutMs: IDLE_MS, maxIdle: 1, maxSockets: 2 };
    const tls = {
      serverName: endpoint.hostname,
      rejectUnauthorized: true,
      ALPNProtocols: "http/1.1",
      ...(ca === null ? {} : { ca }),
    };
    const dialled = address === null ? endpoint : { ...endpoint, hostname: address };
    this.pool = new Pool(dialled, limits, endpoint.secure ? tls : null, clock, new Arrivals(), onFault);
    const path = endpoint.prefix === "" ? "/" : "";
    this.start = headStart({ method: "POST", path, headers: {} }, endpoint);
  }

  /** The status of the answer, whose body is not read; or why there was none. Never rejects. */
  async post(headers: Readonly<Record<string, string>>, body: Uint8Array): Promise<number | HostFault> {
    const answer = await this.postOnce(headers, body, false);
    // The other side has closed the idle connection before it saw the request.
    return answer instanceof HostFault && answer.stale ? this.postOnce(headers, body, true) : answer;
  }

  close(): void {
    this.pool.close();
  }

  private async postOnce(
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
    fresh: boolean,
  ): Promise<number | HostFault> {
    const to = { method: "POST", path: "", headers: {} } as const;
    const exchange = new Http1Exchange(encodeRequest({ to, headers, body: [body] }, this.start), this.clock);
    const timer = this.clock.after(this.timeoutMs, () => exchange.cancel());
    exchange.begin(this.pool, fresh);
    const reply = await exchange.reply;
    timer.cancel();
    if (reply instanceof HostFault) return reply;
    exchange.done();
    return reply.status;
  }
}

interface WebhookConnectionOptions {
  /** The certificate of the issuer, where the machine does not know it. */
  readonly ca?: string | null;
  /** What to connect to instead of what the name resolves to. */
  readonly address?: string | null;
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;
const IDLE_MS = 4_000;
