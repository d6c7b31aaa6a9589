import { ADMIN, type HostAnswer, type RouteAnswer } from "../../api/admin.ts";
import type { Catalog, Host, Route } from "../../catalog/catalog.ts";
import { type LiveRoutes, type RouteReport, reportKey, reportKeyOf } from "../../hosts/route-report.ts";
import type { HostLoad } from "../../hosts/slots/host-slots.ts";
import { epochMs, isoTime } from "../../units/clock.ts";
import { operation } from "../operation.ts";
import { rounded } from "../pages/figures.ts";
import { list } from "../reply.ts";

/**
 * What the operator's configuration came to: hosts with their health, and the whole of it without its
 * secrets.
 */
export const adminHostEndpoints = () => [
  operation("GET /admin/hosts", ADMIN.hosts, async (_, { config, processes }) => {
    const present = config.catalog;
    const { routes, loads } = await processes.hosts();
    const known = new Map(routes.map((report) => [reportKey(report), report]));
    return list(
      [...present.hosts.values()].map((host) => hostView(host, routesTo(host, present), known, loads)),
    );
  }),
  operation("GET /admin/config", ADMIN.config, (_, deps) => deps.config.view()),
];

interface RouteTo {
  readonly modelId: string;
  readonly route: Route;
}

function routesTo(host: Host, { models }: Catalog): RouteTo[] {
  const found: RouteTo[] = [];
  for (const { id, routes } of models.values()) {
    for (const route of routes) if (route.host.id === host.id) found.push({ modelId: id, route });
  }
  return found;
}

function hostView(
  host: Host,
  routes: readonly RouteTo[],
  known: ReadonlyMap<string, RouteReport>,
  loads: LiveRoutes["loads"],
): HostAnswer {
  const views = routes.map((to) => routeView(to, known.get(reportKeyOf(to.route))));
  const load = loads.find((one) => one.host === host.id);
  return {
    id: host.id,
    object: "host",
    // A query may be the way that this host takes its key.
    base_url: host.baseUrl.split("?", 1)[0]!,
    speaks: host.speaks,
    auth: host.auth,
    has_api_key: host.apiKey !== null || host.keys !== undefined,
    state: host.paused ? "paused" : stateOf(views),
    failing_since: failingSince(views),
    max_concurrent: host.maxConcurrent ?? null,
    limit: load?.limit ?? null,
    cut_workers: load?.cut ?? 0,
    in_flight: load?.inFlight ?? 0,
    waiting: load?.waiting ?? 0,
    keys: (host.keys ?? []).map(({ name }) => keyView(name, load)),
    routes: views,
  };
}

function keyView(name: string, load: HostLoad | undefined): HostAnswer["keys"][number] {
  const key = load?.keys?.find((one) => one.name === name);
  return {
    name,
    state: key?.state ?? "usable",
    in_flight: key?.inFlight ?? 0,
    refused: key?.refused ? { at: isoTime(epochMs(key.refused.at)), detail: key.refused.detail } : null,
  };
}

/** A host that no model uses is not known to fail. */
function stateOf(routes: readonly RouteAnswer[]): HostAnswer["state"] {
  if (routes.every(isWell)) return routes.some(isUsed) ? "available" : "unused";
  if (routes.every(({ usable }) => !usable)) return "resting";
  return routes.some(isWell) ? "degraded" : "unproven";
}

/** When the first of the routes that fail now started to. */
function failingSince(routes: readonly RouteAnswer[]): string | null {
  const starts = routes.flatMap((route) =>
    isWell(route) || route.last_failure === null ? [] : [route.last_failure.since],
  );
  return starts.sort()[0] ?? null;
}

const isUsed = ({ served, failed }: RouteAnswer): boolean => served + failed > 0;

const isWell = ({ resting_workers, unproven_workers }: RouteAnswer): boolean =>
  resting_workers === 0 && unproven_workers === 0;

/**
 * Times and rates are medians of the last customers; null before the first stream. A route that a reload has just added is
 * not known yet.
 */
function routeView({ modelId, route }: RouteTo, known: RouteReport | undefined): RouteAnswer {
  return {
    model: modelId,
    host_model: route.model,
    priced: route.price !== null,
    free: route.free,
    verified_free: known?.verifiedFree ?? false,
    usable: known === undefined || known.usable > 0,
    resting_workers: known?.resting ?? 0,
    unproven_workers: known?.unproven ?? 0,
    served: known?.served ?? 0,
    failed: known?.failed ?? 0,
    last_failure: known?.lastFailure
      ? {
          at: isoTime(known.lastFailure.at),
          since: isoTime(known.lastFailure.since),
          detail: known.lastFailure.detail,
        }
      : null,
    first_token_ms: rounded(known?.firstTokenMs),
    tokens_per_second: rounded(known?.tokensPerSecond),
  };
}
