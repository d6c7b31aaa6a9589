import type { Clock } from "../units/clock.ts";

/**
 * Decides whose silence counts. While a client should be sending its request or taking its answer, the server
 * drops it after `seconds` of silence. While the client waits for the gateway, which has deadlines of its
 * own, it may be silent for as long as that takes. Most answers come long before this matters, so the server
 * is told only about those that do not.
 */
export class Patience {
  private readonly waiting = new Set<Connection>();
  private looking = false;

  constructor(
    readonly seconds: number,
    private readonly clock: Pick<Clock, "after">,
  ) {}

  /** The gateway is working for this client. */
  begin(connection: Connection): void {
    if (connection.patient) return;
    this.waiting.add(connection);
    if (!this.looking) this.lookAgain();
  }

  /** It is the client's turn again; any sign of life restarts its time. */
  end(connection: Connection): void {
    this.waiting.delete(connection);
    if (!connection.patient) return;
    connection.patient = false;
    connection.limit(this.seconds);
  }

  private lookAgain(): void {
    this.looking = true;
    this.clock.after((this.seconds * 1_000) / LOOKS, () => this.look());
  }

  private look(): void {
    this.looking = false;
    for (const connection of this.waiting) {
      connection.patient = true;
      connection.limit(0);
    }
    this.waiting.clear();
  }
}

export interface Connection {
  /** Whether the client's silence is unlimited for now. */
  patient: boolean;
  /** Bun keeps what is set here for as long as the connection is open; 0 is no limit. */
  limit(seconds: number): void;
}

/** Within a client's time, so that none runs out while the gateway works. */
const LOOKS = 4;
