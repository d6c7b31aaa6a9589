import type { Socket, SocketHandler, TCPSocketConnectOptions, TLSOptions } from "bun";
import type { Clock, Timer } from "../../units/clock.ts";
import { HostFault } from "../transport.ts";
import type { Arrivals } from "./arrivals.ts";
import type { HostEndpoint } from "./endpoint.ts";
import type { RequestBytes } from "./request.ts";

/**
 * One socket to a host, and its present tenant. It dials, proves the host's certificate, writes requests as
 * fast as the peer takes them, and hands on what arrives; what the bytes mean is the tenant's business.
 */
export class HostConnection {
  /** It has carried an exchange before, so the host may have closed it unseen. */
  reused = false;
  /** On the clock's `elapsedMs`; meaningful while idle. */
  idleUntilMs = 0;
  private tenant: Tenant | null;
  private socket: Socket<HostConnection> | null = null;
  private state: "dialling" | "open" | "closed" = "dialling";
  private dialTimer: Timer | null = null;
  /** Among its owner's sockets. */
  private counted = true;
  private paused = false;
  /** Within this turn; and who had the connection then: bytes of one exchange never reach the next. */
  private arrived: Uint8Array | null = null;
  private arrivedFor: Tenant | null = null;
  /** What the peer has not taken yet. */
  private unsent: RequestBytes = [];

  constructor(
    readonly owner: ConnectionOwner,
    readonly endpoint: HostEndpoint,
    readonly arrivals: Arrivals,
    tenant: Tenant,
  ) {
    this.tenant = tenant;
  }

  dial(tls: TLSOptions | null, clock: Clock, timeoutMs: number): void {
    this.dialTimer = clock.after(timeoutMs, () => this.dialTimedOut(timeoutMs));
    const { hostname, port } = this.endpoint;
    const target: TCPSocketConnectOptions<HostConnection> = { hostname, port, data: this, socket: HANDLERS };
    // An empty `tls` would give a plain socket (Bun 1.4.5): it is left out or full, never in between.
    if (tls !== null) target.tls = tls;
    Bun.connect(target).catch((error) => this.unreachable(error));
  }

  /** Gives an open, idle connection to its next tenant. */
  lease(tenant: Tenant): void {
    this.tenant = tenant;
    this.reused = true;
    this.send(tenant.takeRequest());
  }

  /** Stops reading until `resume`, so that an answer nobody takes stays in the socket. */
  pause(): void {
    if (this.paused || this.state !== "open") return;
    this.paused = true;
    this.socket?.pause();
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    this.socket?.resume();
  }

  /**
   * The tenant is done. `healthy`: the answer ended where it should and the host will take another request.
   */
  release(healthy: boolean, keepAliveS: number | null): void {
    this.tenant = null;
    if (!healthy || this.state !== "open" || this.unsent.length > 0) {
      this.destroy();
    } else {
      this.resume();
      this.owner.idle(this, keepAliveS);
    }
  }

  /** Hard, by a reset: the host learns at once that nobody listens any more. */
  destroy(): void {
    if (this.state === "closed") return;
    const socket = this.socket;
    this.close();
    socket?.terminate();
  }

  /** Politely, for one that is idle. */
  retire(): void {
    if (this.state === "closed") return;
    const socket = this.socket;
    this.close();
    socket?.end();
  }

  /** @internal The socket's events; see HANDLERS. */
  connected(socket: Socket<HostConnection>): void {
    if (this.state === "closed") {
      // Given up while it was being dialled.
      socket.terminate();
      this.uncount();
      return;
    }
    this.socket = socket;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, PROBE_AFTER_MS);
    if (!this.endpoint.secure) this.ready();
  }

  /** @internal `trusted` is false when the certificate does not prove the host's name to a root we know. */
  handshaken(trusted: boolean, error: Error | null): void {
    if (this.state !== "dialling") return;
    if (trusted) this.ready();
    else this.failDial(new HostFault("tls", `No trusted TLS session with the host: ${reasonOf(error)}.`));
  }

  /** @internal */
  received(bytes: Uint8Array): void {
    // A second time within a turn, which is rare.
    if (this.arrived !== null) this.arrivals.deliver();
    if (this.state !== "open") return;
    if (this.tenant === null) {
      this.dropIdle();
    } else {
      this.arrived = bytes;
      this.arrivedFor = this.tenant;
      this.arrivals.add(this);
    }
  }

  /** @internal What arrived in this turn. Never throws: others' bytes come after it. */
  deliver(): void {
    const { arrived, arrivedFor, tenant } = this;
    this.arrived = this.arrivedFor = null;
    if (this.state !== "open" || arrived === null) return;
    if (tenant === null) this.dropIdle();
    else if (tenant === arrivedFor) this.hand(tenant, arrived);
    // An answer to nothing: the next request on this socket would take it for its own.
    else this.lose(true);
  }

  /** @internal */
  drained(): void {
    if (this.state === "open") this.flush();
  }

  /** @internal `error` is null when the peer closed in order. */
  lost(error: Error | null): void {
    // What came before the end counts before it.
    this.arrivals.deliver();
    if (this.state === "closed") return;
    const tenant = this.tenant;
    if (this.state === "dialling") {
      this.failDial(new HostFault("tls", `The host broke off the TLS handshake: ${reasonOf(error)}.`));
    } else if (tenant === null) {
      this.dropIdle();
    } else {
      this.lose(error === null);
    }
  }

  /** @internal The dial has failed, even if nothing waits for it any more. */
  unreachable(error: Error): void {
    if (this.socket === null) this.uncount();
    if (this.state === "dialling") this.failDial(dialFault(error));
  }

  private ready(): void {
    this.dialTimer?.cancel();
    this.dialTimer = null;
    this.state = "open";
    if (this.tenant !== null) this.send(this.tenant.takeRequest());
  }

  private dialTimedOut(timeoutMs: number): void {
    this.failDial(new HostFault("connect_timeout", `No connection within ${timeoutMs} ms.`));
  }

  private failDial(fault: HostFault): void {
    const tenant = this.tenant;
    this.destroy();
    tenant?.failed(fault);
  }

  private send(request: RequestBytes): void {
    this.unsent = request;
    this.flush();
  }

  private flush(): void {
    const { unsent } = this;
    for (let next = unsent[0]; next !== undefined; next = unsent[0]) {
      const sent = this.socket!.write(next);
      if (sent < 0) {
        // Closed under us, and the event has not come yet.
        this.lost(null);
        return;
      }
      if (sent < next.length) {
        unsent[0] = next.subarray(sent);
        return;
      }
      unsent.shift();
    }
  }

  private hand(tenant: Tenant, bytes: Uint8Array): void {
    try {
      tenant.received(bytes);
    } catch (error) {
      this.breakOff(tenant, error);
    }
  }

  private lose(clean: boolean): void {
    const tenant = this.tenant!;
    this.destroy();
    try {
      tenant.lost(clean, this.reused);
    } catch (error) {
      this.breakOff(tenant, error);
    }
  }

  /**
   * The tenant threw, and nobody can tell what it made of the bytes: without an end it would wait out its
   * time limit.
   */
  private breakOff(tenant: Tenant, error: unknown): void {
    this.owner.forget(this);
    this.destroy();
    this.owner.faulted(error);
    tenant.failed(new HostFault("internal", "The gateway could not read the host's answer."));
  }

  private dropIdle(): void {
    this.owner.forget(this);
    this.destroy();
  }

  private close(): void {
    const dialled = this.socket !== null;
    this.state = "closed";
    this.dialTimer?.cancel();
    this.dialTimer = null;
    this.tenant = null;
    this.unsent = [];
    this.arrived = this.arrivedFor = null;
    this.socket = null;
    // One that is still being dialled holds its socket until the dial ends: `connected` or `unreachable`
    // reports it.
    if (dialled) this.uncount();
  }

  private uncount(): void {
    if (!this.counted) return;
    this.counted = false;
    this.owner.gone();
  }
}

/**
 * Who has a connection: one exchange at a time. After `failed` or `lost` the connection is no longer its own.
 * One that throws gets `failed`, and must take it.
 */
export interface Tenant {
  /** Once, when it can be sent. */
  takeRequest(): RequestBytes;
  /** The bytes are the tenant's to keep and to overwrite. */
  received(bytes: Uint8Array): void;
  /** The connection never came to be, or broke at a fault of ours. */
  failed(fault: HostFault): void;
  /** The peer ended it: in order, or by a reset; `reused` when it had carried other exchanges before. */
  lost(clean: boolean, reused: boolean): void;
}

export interface ConnectionOwner {
  /** Free for the next exchange. */
  idle(connection: HostConnection, keepAliveS: number | null): void;
  /** No longer fit to be idle. */
  forget(connection: HostConnection): void;
  /** A tenant threw `error`. */
  faulted(error: unknown): void;
  /** A socket is gone; said once for each. */
  gone(): void;
}

/**
 * Between keep-alive probes: finds a peer that vanished, and keeps address translators on the way from
 * forgetting us.
 */
const PROBE_AFTER_MS = 30_000;

/**
 * One set of handlers for all sockets; a socket's `data` is its HostConnection. Bun gives each `data` event
 * memory of its own (measured: never reused after the callback), so nothing is copied. A `close` follows
 * every `end`: sockets are not half-open.
 */
const HANDLERS: SocketHandler<HostConnection> = {
  // A plain array: a Buffer makes each of its slices a Buffer too, which costs more.
  binaryType: "uint8array" as "buffer",
  open: (socket) => socket.data.connected(socket),
  handshake: (socket, trusted, error) => socket.data.handshaken(trusted, error),
  data: (socket, bytes) => socket.data.received(bytes),
  drain: (socket) => socket.data.drained(),
  end: (socket) => socket.data.lost(null),
  close: (socket, error) => socket.data.lost(error ?? null),
  error: (socket, error) => socket.data.lost(error),
  connectError: (socket, error) => socket.data.unreachable(error),
};

function dialFault(error: Error): HostFault {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall === "getaddrinfo")
    return new HostFault("dns", `The host's name has no address: ${reasonOf(error)}.`);
  const kind = code === "ETIMEDOUT" ? "connect_timeout" : "refused";
  return new HostFault(kind, `No connection: ${reasonOf(error)}.`);
}

/**
 * Receipts say it to customers, who need not know where the operator's hosts stand: a system's own words may
 * hold the address.
 */
function reasonOf(error: Error | null): string {
  if (error === null) return "it closed the connection";
  const { code } = error as NodeJS.ErrnoException;
  return code ?? error.message;
}
