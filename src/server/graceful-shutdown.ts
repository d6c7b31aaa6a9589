import { atMost, type Clock } from "../units/clock.ts";

/**
 * A gateway on its way out. At first it serves as ever, while `/readyz` tells load balancers to send
 * requests elsewhere; then it drains.
 */
export class GracefulShutdown {
  private readonly hurry = Promise.withResolvers<void>();
  private done: Promise<void> | null = null;

  constructor(private readonly steps: ShutdownSteps) {}

  get started(): boolean {
    return this.done !== null;
  }

  /** Resolves when it is over. Called again, it does not wait for balancers any longer. */
  shutDown(): Promise<void> {
    if (this.done !== null) this.hurry.resolve();
    this.done ??= this.run();
    return this.done;
  }

  private async run(): Promise<void> {
    const { clock, delayMs, leave } = this.steps;
    const ms = delayMs();
    if (ms > 0) await atMost(clock, ms, this.hurry.promise);
    await leave();
  }
}

interface ShutdownSteps {
  readonly clock: Clock;
  delayMs(): number;
  leave(): Promise<void>;
}
