import type { Connection, Tenant } from "./connection.ts";

/**
 * What sockets received within one turn of the event loop, handed on together at its end. Answers that arrive
 * at the same time then go through the gateway side by side, a stage at a time, and find each stage's code
 * and data in the processor's caches; handled one by one, each would fetch all of it anew
 * (docs/performance.md, "Side by side").
 */
export class Arrivals {
  private waiting: Arrival[] = [];

  add(connection: Connection, tenant: Tenant, bytes: Uint8Array): void {
    if (this.waiting.length === 0) setImmediate(this.deliver);
    this.waiting.push({ connection, tenant, bytes });
  }

  /** Now: for whoever has news of a socket that must not overtake its bytes. */
  readonly deliver = (): void => {
    const arrived = this.waiting;
    if (arrived.length === 0) return;
    this.waiting = [];
    for (const { connection, tenant, bytes } of arrived) connection.deliver(tenant, bytes);
  };
}

interface Arrival {
  readonly connection: Connection;
  /** Who had the connection when they came: bytes of one exchange never reach the next. */
  readonly tenant: Tenant;
  readonly bytes: Uint8Array;
}
