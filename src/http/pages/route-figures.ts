import type { Model } from "../../catalog/catalog.ts";
import { type RouteReport, routeKey } from "../../routing/route-report.ts";
import type { HttpDeps } from "../deps.ts";

/**
 * How fast each route is, as all processes measured it, for the public status page. Anybody may load that as often as
 * they like, so the other processes are asked every few seconds, however many load it.
 */
export class RouteFigures {
  private latest: ReadonlyMap<string, RouteReport> = new Map();
  private readAtMs = Number.NEGATIVE_INFINITY;
  private reading: Promise<void> | null = null;

  constructor(private readonly deps: HttpDeps) {}

  /** Of one model's hosts, in the order of its routes. */
  async of(): Promise<(model: Model) => readonly RouteFigure[]> {
    const { clock } = this.deps.keyDeps;
    if (clock.elapsedMs() - this.readAtMs >= FRESH_MS) {
      this.reading ??= this.read().finally(() => {
        this.reading = null;
      });
      await this.reading;
    }
    return ({ routes }) => {
      const paid = routes.filter(({ free }) => !free);
      return (paid.length > 0 ? paid : routes).map(({ host, model }) => {
        const known = this.latest.get(routeKey(host.id, model));
        return {
          host: host.id,
          firstTokenMs: rounded(known?.firstTokenMs),
          tokensPerSecond: rounded(known?.tokensPerSecond),
        };
      });
    };
  }

  private async read(): Promise<void> {
    const { hostsNow, keyDeps } = this.deps;
    this.readAtMs = keyDeps.clock.elapsedMs();
    try {
      const { routes } = await hostsNow();
      this.latest = new Map(routes.map((route) => [routeKey(route.host, route.model), route]));
    } catch {
      // The supervisor is busy: what was known a moment ago is told.
    }
  }
}

/** Medians of what customers saw; null where nothing was measured. */
export interface RouteFigure {
  readonly host: string;
  readonly firstTokenMs: number | null;
  readonly tokensPerSecond: number | null;
}

const rounded = (median: number | null | undefined): number | null =>
  median === null || median === undefined ? null : Math.round(median * 10) / 10;

const FRESH_MS = 5_000;
