import type { Clock, Timer } from "./clock.ts";

/** Repeats work in the background: one round at a time, with pauses between. */
export class Rounds {
  private timer: Timer;
  private running: Promise<void> = Promise.resolve();
  private over = false;

  constructor(
    private readonly clock: Pick<Clock, "after">,
    private readonly firstMs: number,
    /** Resolves with the ms until the next round, where they are not those of the first; never rejects. */
    private readonly round: () => Promise<number> | Promise<void>,
  ) {
    this.timer = this.after(firstMs);
  }

  /** A long round looks at this, and ends early. */
  get stopped(): boolean {
    return this.over;
  }

  /** Resolves when no round is running any more. */
  stop(): Promise<void> {
    this.over = true;
    this.timer.cancel();
    return this.running;
  }

  private after(ms: number): Timer {
    return this.clock.after(ms, () => {
      this.running = this.run();
    });
  }

  private async run(): Promise<void> {
    const ms = await this.round();
    if (!this.over) this.timer = this.after(ms ?? this.firstMs);
  }
}
