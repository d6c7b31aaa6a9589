import type { Clock } from "../units/clock.ts";

/**
 * Decides whose silence counts. While a client should be sending its request or taking its answer, the server
 * drops it after `seconds` of silence. While the client waits for the gateway, which has deadlines of its
 * own, it may be silent for as long as that takes. Most answers come long before this matters, so only those
 * that do not are reported to the server.
 */
export class IdleTimeout {
  private readonly waiting = new Set<ClientConnection>();
  private looking = false;

  constructor(
    readonly seconds: number,
    private readonly clock: Pick<Clock, "after">,
  ) {}

  /** The gateway is working for this client. */
  begin(connection: ClientConnection): void {
    if (connection.isExempt) return;
    this.waiting.add(connection);
    if (!this.looking) this.recheck();
  }

  /** It is the client's turn again; any sign of life restarts its time. */
  end(connection: ClientConnection): void {
    this.waiting.delete(connection);
    if (!connection.isExempt) return;
    connection.isExempt = false;
    connection.setTimeout(this.seconds);
  }

  private recheck(): void {
    this.looking = true;
    this.clock.after((this.seconds * 1_000) / CHECKS, () => this.poll());
  }

  private poll(): void {
    this.looking = false;
    for (const connection of this.waiting) {
      connection.isExempt = true;
      connection.setTimeout(0);
    }
    this.waiting.clear();
  }
}

export interface ClientConnection {
  /** Whether the client's silence is unlimited for now. */
  isExempt: boolean;
  /** Bun keeps what is set here for as long as the connection is open; 0 is no limit. */
  setTimeout(seconds: number): void;
}

/** Within a client's time, so that none runs out while the gateway works. */
const CHECKS = 4;
