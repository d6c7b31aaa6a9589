import type { Model } from "../../catalog/catalog.ts";
import { type RouteReport, reportKey, reportKeyOf } from "../../hosts/route-report.ts";
import type { UsageSums } from "../../store/usage/usage-sums.ts";
import { type EpochMs, HOUR_MS } from "../../units/clock.ts";
import type { HttpDeps } from "../deps.ts";
import { memoize } from "./memoize.ts";

export const STATUS_STRETCH_MS = HOUR_MS;
export const STATUS_STRETCHES = 24;

/** Sums of the last day's receipts, for the public status page; null while there are none. */
export function dailySums(deps: HttpDeps): () => Promise<UsageSums | null> {
  const { clock } = deps;
  let latest: UsageSums | null = null;
  const read = async () => {
    const now = clock.now();
    const since = (now - (now % STATUS_STRETCH_MS) - (STATUS_STRETCHES - 1) * STATUS_STRETCH_MS) as EpochMs;
    latest =
      (await deps.books.usage({ balanceId: null, keyId: null, since, stretchMs: STATUS_STRETCH_MS })) ??
      latest;
    return latest;
  };
  return memoize(read, SUMS_MS, clock);
}

const SUMS_MS = 60_000;

/** How fast a model is at each of its hosts, in the order of its routes, as all processes measured it. */
export function routeFigures(deps: HttpDeps): () => Promise<(model: Model) => readonly RouteFigure[]> {
  let latest: ReadonlyMap<string, RouteReport> = new Map();
  const read = async () => {
    try {
      const { routes } = await deps.processes.hosts();
      latest = new Map(routes.map((report) => [reportKey(report), report]));
    } catch {
      // The supervisor is busy: the figures from a moment ago are shown.
    }
    return (model: Model) => figuresOf(model, latest);
  };
  return memoize(read, ROUTES_MS, deps.clock);
}

const ROUTES_MS = 5_000;

/** Medians of what customers saw; null where nothing was measured. */
export interface RouteFigure {
  readonly host: string;
  /** Attempts since the start, at any process of this machine. */
  readonly attempts: number;
  readonly firstTokenMs: number | null;
  readonly tokensPerSecond: number | null;
}

function figuresOf({ routes }: Model, reports: ReadonlyMap<string, RouteReport>): RouteFigure[] {
  const paid = routes.filter(({ free }) => !free);
  return (paid.length > 0 ? paid : routes).map((route) => {
    const known = reports.get(reportKeyOf(route));
    return {
      host: route.host.id,
      attempts: known === undefined ? 0 : known.served + known.failed,
      firstTokenMs: rounded(known?.firstTokenMs),
      tokensPerSecond: rounded(known?.tokensPerSecond),
    };
  });
}

/** To tenths. */
export const rounded = (median: number | null | undefined): number | null =>
  median === null || median === undefined ? null : Math.round(median * 10) / 10;
