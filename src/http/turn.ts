/**
 * The end of the event loop's turn. Requests that arrive in one turn wait for it and then go through the gateway side by
 * side, a stage at a time, and find each stage's code and data in the processor's caches (docs/performance.md, "Side by
 * side"). One that is alone waits for nothing but a look at the sockets.
 */
export class Turn {
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
