import type { Home } from "./affinity.ts";
import { answersWhole, type Roads, type Stop, type Wish } from "./stop.ts";

/** A model's hosts that stream before those that cannot, where a stream is wanted. */
export function streamingFirst(stops: readonly Stop[], { stream }: Pick<Wish, "stream">): readonly Stop[] {
  if (!(stream && stops.length > 1 && stops.some(answersWhole))) return stops;
  return [...stops.filter((stop) => !answersWhole(stop)), ...stops.filter(answersWhole)];
}

/**
 * Leaves out hosts that rest because they fail, but never more than half of a model's hosts: if most seem to
 * fail, what is known may be wrong, and the rest would get all of the load. Resting hosts that stay are tried
 * last.
 */
export function healthyFirst(stops: readonly Stop[], roads: Roads): readonly Stop[] {
  for (const { route } of stops) if (roads.restMs(route) > 0) return restingLast(stops, roads);
  return stops;
}

function restingLast(stops: readonly Stop[], roads: Roads): readonly Stop[] {
  // Asked once for each host, because a rest may end in the meantime.
  const judged = stops.map((stop) => ({ stop, restMs: roads.restMs(stop.route) }));
  const resting = judged
    .filter(({ restMs }) => restMs > 0)
    .toSorted((a, b) => a.restMs - b.restMs)
    .map(({ stop }) => stop);
  const ofModel = (all: readonly Stop[], { model }: Stop) =>
    all.filter((stop) => stop.model === model).length;
  const kept = resting.filter((stop, at) => ofModel(resting.slice(at), stop) > ofModel(stops, stop) >> 1);
  return [...judged.filter(({ restMs }) => restMs === 0).map(({ stop }) => stop), ...kept];
}

/**
 * A conversation stays with its last host, as long as that host works and the client names no order of its
 * own. One that cannot stream is left again as soon as another can.
 */
export function homeFirst(stops: readonly Stop[], wish: Wish, roads: Roads): readonly Stop[] {
  const { home, overrides, stream } = wish;
  const { order, sort } = overrides.provider;
  if (home === null || order.length > 0 || sort !== null) return stops;
  const at = placeOf(home, stops);
  if (at <= 0 || roads.restMs(stops[at]!.route) > 0) return stops;
  if (stream && answersWhole(stops[at]!) && streamedElsewhere(stops, stops[at]!, roads)) return stops;
  return [stops[at]!, ...stops.slice(0, at), ...stops.slice(at + 1)];
}

function streamedElsewhere(stops: readonly Stop[], { model }: Stop, roads: Roads): boolean {
  return stops.some((stop) => stop.model === model && !answersWhole(stop) && roads.restMs(stop.route) === 0);
}

function placeOf({ host, hostModel, model }: Home, stops: readonly Stop[]): number {
  return stops.findIndex(
    (stop) => stop.route.host.id === host && stop.route.model === hostModel && stop.model.id === model,
  );
}

/** Only a limited number of hosts is tried, so every model gets one try before any gets a second. */
export function everyModelOnce(stops: readonly Stop[], { maxHosts, overrides }: Wish): readonly Stop[] {
  if (overrides.provider.sort?.acrossModels) return stops;
  for (const { model } of stops) if (model !== stops[0]!.model) return spread(stops, maxHosts);
  return stops;
}

function spread(stops: readonly Stop[], maxHosts: number): readonly Stop[] {
  const tried = new Set<Stop>();
  for (const model of new Set(stops.map(({ model }) => model))) {
    if (tried.size < maxHosts) tried.add(stops.find((stop) => stop.model === model)!);
  }
  for (const stop of stops) if (tried.size < maxHosts) tried.add(stop);
  return [...stops.filter((stop) => tried.has(stop)), ...stops.filter((stop) => !tried.has(stop))];
}

/** Milliseconds until the first of these hosts takes requests again; 0 when one does now. */
export const soonestMs = (stops: readonly Stop[], roads: Roads): number =>
  Math.min(...stops.map(({ route }) => roads.restMs(route)));
