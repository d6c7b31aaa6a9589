import { atMost, type Clock } from "../units/clock.ts";

/**
 * A gateway from its start to its end. On its way out it serves as ever at first, while `/readyz` tells load balancers
 * to send requests elsewhere; then it leaves.
 */
export class Lifecycle {
  private hasStarted = false;
  private readonly hurry = Promise.withResolvers<void>();
  private left: Promise<void> | null = null;

  constructor(
    private readonly clock: Clock,
    private readonly shutdownDelayMs: () => number,
    private readonly canRecord: () => boolean,
  ) {}

  started(): void {
    this.hasStarted = true;
  }

  /** Each connection is closed with its next answer. */
  get isStopping(): boolean {
    return this.left !== null;
  }

  /** Why no requests should be sent here; null while they should. */
  unready(): string | null {
    if (this.isStopping) return "it is stopping";
    if (!this.hasStarted) return "it is starting";
    return this.canRecord() ? null : "it cannot record requests";
  }

  /** Resolves when it has left. Called again, it does not wait for balancers any longer. */
  stop(leave: () => Promise<void>): Promise<void> {
    if (this.left !== null) this.hurry.resolve();
    this.left ??= this.run(leave);
    return this.left;
  }

  private async run(leave: () => Promise<void>): Promise<void> {
    const ms = this.shutdownDelayMs();
    if (ms > 0) await atMost(this.clock, ms, this.hurry.promise);
    await leave();
  }
}
