import type { Catalog, Route } from "./catalog/catalog.ts";
import { type ProbeTools, probeFree } from "./hosts/probe.ts";
import type { Health } from "./routing/health.ts";
import type { Clock, Timer } from "./units/clock.ts";

/**
 * Keeps knowing which free routes are really free: each is probed at start, after a reload, on a schedule, and soon after
 * it failed a request, which takes it out until a probe has succeeded again.
 */
export class FreeRoutes {
  private timer: Timer | null = null;
  private stopped = false;

  constructor(
    private readonly health: Health,
    private readonly tools: ProbeTools,
    private readonly clock: Clock,
    private readonly catalog: () => Catalog,
  ) {}

  /** Resolves once every free route was probed. */
  async verify(): Promise<void> {
    this.timer?.cancel();
    const routes = [...this.catalog().models.values()].flatMap((model) =>
      model.routes.filter(({ free }) => free),
    );
    let all = true;
    await Promise.all(
      routes.map(async (route) => {
        const verified = await probeFree(route, this.tools);
        this.health.verify(route, verified);
        all &&= verified;
      }),
    );
    if (!this.stopped) this.again(all ? PROBE_EVERY_MS : RETRY_MS);
  }

  /** A free route failed a request: it is not verified any more. */
  doubt(route: Route): void {
    this.health.verify(route, false);
    if (!this.stopped) this.again(RETRY_MS);
  }

  stop(): void {
    this.stopped = true;
    this.timer?.cancel();
  }

  private again(ms: number): void {
    this.timer?.cancel();
    this.timer = this.clock.after(ms, () => void this.verify());
  }
}

const PROBE_EVERY_MS = 10 * 60_000;
const RETRY_MS = 15_000;
