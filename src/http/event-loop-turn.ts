/**
 * Every answer at once would let one packet of 5,000 requests keep everybody else waiting: Bun goes on with a connection's next
 * request, in the same turn. It closes the connection where the answer is still to come.
 */
export const nextTurn = (): Promise<void> => new Promise((next) => setImmediate(next));

/**
 * The end of the event loop's current turn. Requests that arrive in one turn wait for it, then go through the
 * gateway side by side, a stage at a time, and find each stage's code and data in the processor's caches
 * (docs/performance.md, "Side by side"). A request on its own waits only for one poll of the sockets.
 */
export class EventLoopTurn {
  private ending: Promise<void> | null = null;

  end(): Promise<void> {
    this.ending ??= new Promise((resolve) => {
      setImmediate(() => {
        this.ending = null;
        resolve();
      });
    });
    return this.ending;
  }
}
