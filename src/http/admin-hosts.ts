import type { Catalog, Host, Route } from "../catalog/catalog.ts";
import { ADMIN } from "./admin-schemas.ts";
import { guarded } from "./admin-token.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoint, Exchange } from "./endpoint.ts";
import { ok, type Reply } from "./reply.ts";

/** What the operator's configuration came to: hosts with their health, and the whole of it without its secrets. */
export function adminHostEndpoints(deps: HttpDeps): Endpoint[] {
  return [
    { method: "GET", path: "/admin/hosts", about: ADMIN.hosts, handle: guarded(listHosts, deps) },
    { method: "GET", path: "/admin/config", about: ADMIN.config, handle: guarded(showConfig, deps) },
  ];
}

async function listHosts(_: Exchange, { catalog, roads }: HttpDeps): Promise<Reply> {
  const present = catalog();
  return ok({
    object: "list",
    data: [...present.hosts.values()].map((host) => hostView(host, routesTo(host, present), roads)),
  });
}

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

function hostView(host: Host, routes: readonly RouteTo[], roads: HttpDeps["roads"]) {
  const views = routes.map((to) => routeView(to, roads));
  const usable = views.filter((view) => view.usable).length;
  return {
    id: host.id,
    object: "host" as const,
    // A query may be the way that this host takes its key.
    base_url: host.baseUrl.split("?", 1)[0]!,
    speaks: host.speaks,
    auth: host.auth,
    has_api_key: host.apiKey !== null,
    // A host that no model uses is not known to fail.
    state: usable === views.length ? "available" : usable === 0 ? "resting" : "degraded",
    routes: views,
  };
}

/** Times and rates are moving averages; null before the first stream. */
function routeView({ modelId, route }: RouteTo, roads: HttpDeps["roads"]) {
  const speed = roads.speed(route);
  return {
    model: modelId,
    host_model: route.model,
    priced: route.price !== null,
    free: route.free,
    verified_free: route.free && roads.verifiedFree(route),
    usable: roads.usable(route),
    first_token_ms: rounded(speed?.firstTokenMs),
    tokens_per_second: rounded(speed?.tokensPerSecond),
  };
}

const rounded = (average: number | null | undefined): number | null =>
  average === null || average === undefined ? null : Math.round(average * 10) / 10;

async function showConfig(_: Exchange, deps: HttpDeps): Promise<Reply> {
  return ok(deps.configInForce());
}
