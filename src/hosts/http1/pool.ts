import type { TLSOptions } from "bun";
import type { Clock, Timer } from "../../units/clock.ts";
import type { Arrivals } from "./arrivals.ts";
import { type ConnectionOwner, HostConnection, type Tenant } from "./connection.ts";
import type { HostEndpoint } from "./endpoint.ts";

export interface PoolLimits {
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly maxIdle: number;
  readonly maxSockets: number;
}

/**
 * The sockets to one origin. The one used last is reused first: the others grow old together and can be let
 * go.
 */
export class Pool implements ConnectionOwner {
  private readonly pooled: HostConnection[] = [];
  private sockets = 0;
  private sweep: Timer | null = null;
  private closed = false;

  constructor(
    readonly endpoint: HostEndpoint,
    readonly limits: PoolLimits,
    readonly tls: TLSOptions | null,
    readonly clock: Clock,
    readonly arrivals: Arrivals,
    readonly faulted: (error: unknown) => void,
  ) {}

  /** A connection for the tenant, pooled or dialled; null when the origin has as many sockets as it may. */
  connect(tenant: Tenant, fresh: boolean): HostConnection | null {
    const pooled = fresh ? null : this.takeIdle();
    if (pooled !== null) {
      pooled.lease(tenant);
      return pooled;
    }
    if (this.sockets >= this.limits.maxSockets) return null;
    this.sockets++;
    const connection = new HostConnection(this, this.endpoint, this.arrivals, tenant);
    connection.dial(this.tls, this.clock, this.limits.connectTimeoutMs);
    return connection;
  }

  get vacant(): boolean {
    return this.sockets === 0;
  }

  /** Sockets that are not idle. */
  get inUse(): number {
    return this.sockets - this.pooled.length;
  }

  /** Lets go of the idle ones now, and of the others when they are done. */
  close(): void {
    this.closed = true;
    this.sweep?.cancel();
    this.sweep = null;
    for (const connection of this.pooled.splice(0)) connection.retire();
  }

  idle(connection: HostConnection, keepAliveS: number | null): void {
    const keepMs = keepAliveS === null ? this.limits.idleTimeoutMs : hintedIdleMs(keepAliveS);
    if (this.closed || keepMs <= 0 || this.pooled.length >= this.limits.maxIdle) {
      connection.retire();
      return;
    }
    connection.idleUntilMs = this.clock.elapsedMs() + keepMs;
    this.pooled.push(connection);
    this.sweep ??= this.clock.after(SWEEP_EVERY_MS, this.retireExpired);
  }

  forget(connection: HostConnection): void {
    const at = this.pooled.indexOf(connection);
    if (at >= 0) this.pooled.splice(at, 1);
  }

  gone(): void {
    this.sockets--;
  }

  private takeIdle(): HostConnection | null {
    const nowMs = this.clock.elapsedMs();
    for (let connection = this.pooled.pop(); connection !== undefined; connection = this.pooled.pop()) {
      if (connection.idleUntilMs > nowMs) return connection;
      connection.retire();
    }
    return null;
  }

  private readonly retireExpired = (): void => {
    this.sweep = null;
    const nowMs = this.clock.elapsedMs();
    let kept = 0;
    for (const connection of this.pooled) {
      if (connection.idleUntilMs > nowMs) this.pooled[kept++] = connection;
      else connection.retire();
    }
    this.pooled.length = kept;
    if (kept > 0) this.sweep = this.clock.after(SWEEP_EVERY_MS, this.retireExpired);
  };
}

const SWEEP_EVERY_MS = 1000;
/** A request sent as the host's own timeout runs out would meet a closed socket. */
const HINT_MARGIN_MS = 1000;
const HINTED_IDLE_MAX_MS = 60_000;

const hintedIdleMs = (keepAliveS: number): number =>
  Math.min(keepAliveS * 1000 - HINT_MARGIN_MS, HINTED_IDLE_MAX_MS);
