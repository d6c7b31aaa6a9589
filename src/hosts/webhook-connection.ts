import type { Clock } from "../units/clock.ts";
import { type Http1Options, Http1Transport } from "./http1/transport.ts";
import { type Destination, HostFault } from "./transport.ts";

/**
 * An address that is posted to, one request after another on one connection. Redirects are not followed, and no proxy is
 * read from the environment.
 */
export class WebhookConnection {
  private readonly transport: Http1Transport;
  private readonly to: Destination;

  constructor(
    url: string,
    private readonly clock: Clock,
    onFault: (error: unknown) => void,
    private readonly timeoutMs = TIMEOUT_MS,
    options: Pick<Http1Options, "address" | "ca"> = {},
  ) {
    const limits = { connectTimeoutMs: timeoutMs, maxIdlePerOrigin: 1, maxSocketsPerOrigin: 2 };
    this.transport = new Http1Transport({ clock, onFault, ...limits, ...options });
    const path = new URL(url).pathname === "/" ? "/" : "";
    this.to = { host: { id: "webhook", baseUrl: url }, method: "POST", path, headers: {} };
  }

  /** The status of the answer, whose body is not read; or why there was none. Never rejects. */
  async post(headers: Readonly<Record<string, string>>, body: Uint8Array): Promise<number | HostFault> {
    const answer = await this.postOnce(headers, body, false);
    // The other side has closed the idle connection before it saw the request.
    return answer instanceof HostFault && answer.stale ? this.postOnce(headers, body, true) : answer;
  }

  close(): void {
    this.transport.close();
  }

  private async postOnce(
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
    fresh: boolean,
  ): Promise<number | HostFault> {
    const exchange = this.transport.open({ to: this.to, headers, body: [body], fresh });
    const timer = this.clock.after(this.timeoutMs, () => exchange.cancel());
    const reply = await exchange.reply;
    timer.cancel();
    if (reply instanceof HostFault) return reply;
    exchange.done();
    return reply.status;
  }
}

const TIMEOUT_MS = 10_000;
