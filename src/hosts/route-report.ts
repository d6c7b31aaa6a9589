import type { Catalog, Route } from "../catalog/catalog.ts";
import type { Health, LastFailure } from "../routing/health.ts";
import type { KeyLoad } from "./slots/host-key-slots.ts";
import type { HostLoad } from "./slots/host-slots.ts";

/** What past attempts say about a route, as one process may tell another. */
export interface RouteReport {
  readonly host: string;
  /** By the name that the host has for it. */
  readonly model: string;
  /** Free requests are measured apart, and are not what customers choose by. */
  readonly free: boolean;
  /** Processes that would send it a request now, and those that let it rest. */
  readonly usable: number;
  readonly resting: number;
  /** The usable ones at which it has rested, and served nobody since. */
  readonly unproven: number;
  /** In every one of them. */
  readonly verifiedFree: boolean;
  /** Medians of the last customers; null before the first stream. */
  readonly firstTokenMs: number | null;
  readonly tokensPerSecond: number | null;
  /** Attempts since start, and why the last one that failed did. */
  readonly served: number;
  readonly failed: number;
  readonly lastFailure: LastFailure | null;
}

/** Reports each route once, however many models it serves. */
export function routeReports(health: Health, { models }: Catalog): RouteReport[] {
  const found = new Map<string, RouteReport>();
  for (const { routes } of models.values())
    for (const route of routes) found.getOrInsertComputed(reportKeyOf(route), () => reportOf(health, route));
  return [...found.values()];
}

/** What several processes, which each learn by themselves, know together. */
export const liveTogether = (reports: readonly LiveRoutes[]): LiveRoutes => ({
  routes: routesTogether(reports.flatMap(({ routes }) => routes)),
  loads: loadsTogether(reports.flatMap(({ loads }) => loads)),
});

function routesTogether(reports: readonly RouteReport[]): RouteReport[] {
  const found = Map.groupBy(reports, reportKey);
  return [...found.values()].map((same) => ({
    host: same[0]!.host,
    model: same[0]!.model,
    free: same[0]!.free,
    usable: sumOf(same, "usable"),
    resting: sumOf(same, "resting"),
    unproven: sumOf(same, "unproven"),
    verifiedFree: same.every(({ verifiedFree }) => verifiedFree),
    firstTokenMs: mean(same.map(({ firstTokenMs }) => firstTokenMs)),
    tokensPerSecond: mean(same.map(({ tokensPerSecond }) => tokensPerSecond)),
    served: sumOf(same, "served"),
    failed: sumOf(same, "failed"),
    lastFailure: latest(same.map(({ lastFailure }) => lastFailure)),
  }));
}

function loadsTogether(loads: readonly HostLoad[]): HostLoad[] {
  return [...Map.groupBy(loads, ({ host }) => host)].map(([host, same]) => {
    const keys = same.flatMap(({ keys = [] }) => keys);
    return {
      host,
      inFlight: sumOf(same, "inFlight"),
      limit: sumOf(same, "limit"),
      waiting: sumOf(same, "waiting"),
      cut: sumOf(same, "cut"),
      ...(keys.length === 0 ? {} : { keys: keysTogether(keys) }),
    };
  });
}

/** The operator sees the worst that a process knows of a key. */
const keysTogether = (keys: readonly KeyLoad[]): KeyLoad[] =>
  [...Map.groupBy(keys, ({ name }) => name).values()].map((same) => ({
    ...same.reduce((worst, key) =>
      KEY_STATES.indexOf(key.state) < KEY_STATES.indexOf(worst.state) ? worst : key,
    ),
    inFlight: sumOf(same, "inFlight"),
  }));

const KEY_STATES = ["usable", "resting", "retired"] as const;

export const reportKey = ({ host, model, free }: Pick<RouteReport, "host" | "model" | "free">): string =>
  `${host}\n${model}\n${free}`;

export const reportKeyOf = ({ host, model, free }: Route): string =>
  reportKey({ host: host.id, model, free });

function reportOf(health: Health, route: Route): RouteReport {
  const usable = health.usable(route);
  const speed = health.speed(route);
  const { served = 0, failed = 0, lastFailure = null } = health.record(route) ?? {};
  return {
    host: route.host.id,
    model: route.model,
    free: route.free,
    usable: usable ? 1 : 0,
    resting: usable ? 0 : 1,
    unproven: health.unproven(route) ? 1 : 0,
    verifiedFree: route.free && health.verifiedFree(route),
    firstTokenMs: speed?.firstTokenMs ?? null,
    tokensPerSecond: speed?.tokensPerSecond ?? null,
    served,
    failed,
    lastFailure,
  };
}

const sumOf = <Name extends string>(
  reports: readonly Readonly<Record<Name, number>>[],
  counted: Name,
): number => reports.reduce((sum, report) => sum + report[counted], 0);

const latest = (failures: readonly (LastFailure | null)[]): LastFailure | null =>
  failures.reduce((newest, one) => (one !== null && one.at > (newest?.at ?? 0) ? one : newest), null);

function mean(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}

/** What routing knows about routes, and how busy hosts are. */
export interface LiveRoutes {
  readonly routes: readonly RouteReport[];
  readonly loads: readonly HostLoad[];
}
