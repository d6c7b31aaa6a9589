/**
 * What sockets received within one turn of the event loop, handed on together at its end. Answers that arrive
 * at the same time then go through the gateway side by side, a stage at a time, and find each stage's code
 * and data in the processor's caches; handled one by one, each would fetch all of it again
 * (docs/performance.md, "Side by side").
 */
export class Arrivals {
  private waiting: Receiver[] = [];

  /** The connection keeps what has arrived for it until its turn comes. */
  add(connection: Receiver): void {
    if (this.waiting.length === 0) setImmediate(this.deliver);
    this.waiting.push(connection);
  }

  /** At once: for events of a socket that must not overtake its bytes. */
  readonly deliver = (): void => {
    const arrived = this.waiting;
    if (arrived.length === 0) return;
    this.waiting = [];
    for (const connection of arrived) connection.deliver();
  };
}

/** A connection that has received bytes. */
interface Receiver {
  deliver(): void;
}
