import {
  answersWhole,
  type Candidate,
  type Planning,
  type RouteState,
  type StickyRoute,
} from "./candidate.ts";

/** For a streaming request: hosts that stream come before hosts that cannot. */
export function streamingFirst(candidates: readonly Candidate[], { stream }: Planning): readonly Candidate[] {
  if (!(stream && candidates.length > 1 && candidates.some(answersWhole))) return candidates;
  return [...candidates.filter((candidate) => !answersWhole(candidate)), ...candidates.filter(answersWhole)];
}

/**
 * Skips resting hosts, but never more than half of a model's hosts: if most seem to fail, that may be wrong, and the others
 * would get all of the load. Resting hosts that stay are tried last.
 */
export function healthyFirst(candidates: readonly Candidate[], routeState: RouteState): readonly Candidate[] {
  for (const { route } of candidates)
    if (routeState.restMs(route) > 0) return restingLast(candidates, routeState);
  return candidates;
}

function restingLast(candidates: readonly Candidate[], routeState: RouteState): readonly Candidate[] {
  // Read once per host, because a rest may end in the meantime.
  const judged = candidates.map((candidate) => ({
    candidate,
    restMs: routeState.restMs(candidate.route),
  }));
  const resting = judged
    .filter(({ restMs }) => restMs > 0)
    .toSorted((a, b) => a.restMs - b.restMs)
    .map(({ candidate }) => candidate);
  const ofModel = (all: readonly Candidate[], { model }: Candidate) =>
    all.filter((candidate) => candidate.model === model).length;
  const kept = resting.filter(
    (candidate, at) => ofModel(resting.slice(at), candidate) > ofModel(candidates, candidate) >> 1,
  );
  return [...judged.filter(({ restMs }) => restMs === 0).map(({ candidate }) => candidate), ...kept];
}

/**
 * A conversation stays with its last host while that host works, unless the client gives an order of hosts: its prompt cache is
 * worth more than a faster or cheaper host. It leaves a host that cannot stream as soon as another one can.
 */
export function stickyFirst(candidates: readonly Candidate[], planning: Planning): readonly Candidate[] {
  const { sticky, overrides, stream, routeState } = planning;
  if (sticky === null || overrides.provider.order.length > 0) return candidates;
  const at = positionOf(sticky, candidates);
  if (at <= 0 || routeState.restMs(candidates[at]!.route) > 0) return candidates;
  if (stream && answersWhole(candidates[at]!) && isStreamedElsewhere(candidates, at, routeState))
    return candidates;
  return [candidates[at]!, ...candidates.slice(0, at), ...candidates.slice(at + 1)];
}

const isStreamedElsewhere = (candidates: readonly Candidate[], at: number, routeState: RouteState): boolean =>
  candidates.some(
    (candidate) =>
      candidate.model === candidates[at]!.model &&
      !answersWhole(candidate) &&
      routeState.restMs(candidate.route) === 0,
  );

const positionOf = (sticky: StickyRoute, candidates: readonly Candidate[]): number =>
  candidates.findIndex(
    ({ route, model }) =>
      route.host.id === sticky.host && route.model === sticky.hostModel && model.id === sticky.model,
  );

/** Only a limited number of hosts is tried, so every model gets one try before any gets a second. */
export function everyModelOnce(candidates: readonly Candidate[], planning: Planning): readonly Candidate[] {
  const { maxHosts, overrides } = planning;
  if (overrides.provider.sort?.acrossModels) return candidates;
  for (const { model } of candidates) if (model !== candidates[0]!.model) return spread(candidates, maxHosts);
  return candidates;
}

function spread(candidates: readonly Candidate[], maxHosts: number): readonly Candidate[] {
  const tried = new Set<Candidate>();
  for (const model of new Set(candidates.map(({ model }) => model))) {
    if (tried.size < maxHosts) tried.add(candidates.find((candidate) => candidate.model === model)!);
  }
  for (const candidate of candidates) if (tried.size < maxHosts) tried.add(candidate);
  return [
    ...candidates.filter((candidate) => tried.has(candidate)),
    ...candidates.filter((candidate) => !tried.has(candidate)),
  ];
}

/** Milliseconds until the first of these hosts takes requests again; 0 when one does now. */
export const soonestMs = (candidates: readonly Candidate[], routeState: RouteState): number =>
  Math.min(...candidates.map(({ route }) => routeState.restMs(route)));
