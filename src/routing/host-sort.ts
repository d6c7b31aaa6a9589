import type { Price } from "../catalog/price.ts";
import { type Refusal, refused } from "../units/errors/refusal.ts";
import { answersWhole, type Candidate, type Planning } from "./candidate.ts";
import { streamingFirst } from "./candidate-order.ts";
import { type HostSort, NO_PREFERENCES } from "./provider-preferences.ts";
import { providerAllows } from "./route-filter.ts";

/** One model's candidates, filtered and ordered by `provider`. If a filter leaves none, the refusal names that filter. */
export function preferredCandidates(
  candidates: readonly Candidate[],
  planning: Planning,
): readonly Candidate[] | Refusal {
  const preferences = planning.overrides.provider;
  if (preferences === NO_PREFERENCES) return unasked(candidates, planning);
  const { sort, order, allowFallbacks } = preferences;
  const left = providerAllows(candidates, preferences, planning.members, candidates[0]!.model);
  if (refused(left)) return left;
  const ordered = sort === null ? unasked(left, planning) : sorted(left, sort.by, planning);
  if (order.length > 0) return ordered.toSorted((a, b) => rank(order, a) - rank(order, b));
  return allowFallbacks ? ordered : ordered.slice(0, 1);
}

/** The order without a client's preference: the model's, or else the operator's for all models. */
function unasked(candidates: readonly Candidate[], planning: Planning): readonly Candidate[] {
  const order = candidates[0]!.model.order ?? planning.order;
  if (order === "listed") return streamingFirst(candidates, planning);
  if (order === "price") return shared(candidates, planning);
  return streamingFirst(sorted(candidates, order, planning), planning);
}

/** Preferences across the candidates of all models: sorting without partition, and preferred speeds. */
export function acrossModels(candidates: readonly Candidate[], planning: Planning): readonly Candidate[] {
  const { sort, minThroughput, maxLatency } = planning.overrides.provider;
  const all = sort?.acrossModels ? inOrder(candidates, sort.by, planning) : candidates;
  if (minThroughput.length === 0 && maxLatency.length === 0) return all;
  const isFast = (candidate: Candidate) => isFastEnough(candidate, planning);
  return [...all.filter(isFast), ...all.filter((candidate) => !isFast(candidate))];
}

/** As the client prefers; a route without measurements is. */
function isFastEnough({ route }: Candidate, { overrides, routeState }: Planning): boolean {
  const { minThroughput, maxLatency } = overrides.provider;
  const speed = routeState.speed(route);
  return (
    speed === null ||
    (minThroughput.every(({ share, bound }) => (speed.tokensPerSecondReached(share) ?? Infinity) >= bound) &&
      maxLatency.every(({ share, bound }) => (speed.firstTokenMsWithin(share) ?? 0) <= bound))
  );
}

/** Whether every process would order these alike, and the conversation's next request too, whatever it prefers then. */
export const isLasting = ([first]: readonly Candidate[], { order, overrides }: Planning): boolean => {
  const by = first!.model.order ?? order;
  return overrides.provider === NO_PREFERENCES && by !== "latency" && by !== "throughput";
};

function rank(order: readonly string[], { route }: Candidate): number {
  const at = order.indexOf(route.host.id.toLowerCase());
  return at === -1 ? order.length : at;
}

/**
 * Cheapest first, except that each working host comes first for its share of the requests, weighted by the inverse square of
 * its price, as at OpenRouter: hosts with the same price get equal shares, one at twice the price a quarter. The conversation
 * decides (rendezvous hashing): all processes send its turns to the same host without messages, and a host that comes or goes
 * moves only its own conversations. For streams, hosts that cannot stream come last.
 */
function shared(candidates: readonly Candidate[], planning: Planning): readonly Candidate[] {
  if (candidates.length === 1) return candidates;
  const { stream, conversation, chance, routeState } = planning;
  const cheapest = candidates.toSorted((a, b) => plainPrice(a.price) - plainPrice(b.price));
  const ordered = streamingFirst(cheapest, planning);
  const working = ordered.filter(({ route }) => routeState.restMs(route) === 0);
  const ready = stream
    ? working.filter((candidate) => answersWhole(candidate) === answersWhole(working[0]!))
    : working;
  if (ready.length === 0) return ordered;
  const seed = BigInt(conversation ?? Math.floor(chance() * Number.MAX_SAFE_INTEGER));
  const waits = new Map(ready.map((candidate) => [candidate, waitOf(candidate, seed)]));
  const first = ready.reduce((a, b) => (waits.get(b)! < waits.get(a)! ? b : a));
  return [first, ...ordered.filter((candidate) => candidate !== first)];
}

/** Exponentially distributed with its weight as the rate, so the least of several is each one's by its weight. */
function waitOf({ route: { host, model }, price }: Candidate, seed: bigint): number {
  const drawn = (Number(Bun.hash.wyhash(`${host.id} ${model}`, seed) >> 12n) + 0.5) / 2 ** 52;
  return -Math.log(drawn) * Math.max(plainPrice(price), MIN_PRICE) ** 2;
}

/** $0.001 per million, so that a price of zero does not get everything. */
const MIN_PRICE = 1_000_000;

/**
 * In order, except that now and then a host with few recent measurements comes first, because nothing else would show that it
 * has become faster. A conversation with a sticky route is not used for that.
 */
function sorted(
  candidates: readonly Candidate[],
  by: HostSort["by"],
  planning: Planning,
): readonly Candidate[] {
  const { sticky, chance, routeState, by: customer } = planning;
  const ordered = inOrder(candidates, by, planning);
  if (by === "price" || ordered.length === 1 || sticky !== null) return ordered;
  if (chance() < 1 - EXPLORED_SHARE) return ordered;
  const dueMs = ordered.map(({ route }, at) => (at === 0 ? 0 : routeState.explorationDueMs(route, customer)));
  const longest = Math.max(...dueMs);
  if (longest === 0) return ordered;
  const explored = ordered[dueMs.indexOf(longest)]!;
  return [{ ...explored, isExplored: true }, ...ordered.filter((candidate) => candidate !== explored)];
}

/** The share of requests without a preference that may explore a host (routing/exploration-log). */
const EXPLORED_SHARE = 1 / 16;

/** Routes without measurements come last, in their previous order. */
function inOrder(
  candidates: readonly Candidate[],
  by: HostSort["by"],
  { promptEstimate, by: customer, routeState }: Planning,
): readonly Candidate[] {
  const cost = ({ route, price }: Candidate): number => {
    if (by === "price") return plainPrice(price);
    if (by === "latency") return routeState.latencyMs(route, promptEstimate, customer) ?? Infinity;
    return -(routeState.throughput(route, customer) ?? -Infinity);
  };
  const costs = new Map(candidates.map((candidate) => [candidate, cost(candidate)]));
  // The difference of two infinities is not a number.
  return candidates.toSorted((a, b) => compare(costs.get(a)!, costs.get(b)!));
}

const compare = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0);

/** One number for a price, as OpenRouter sorts by: a prompt token and an answer token. */
const plainPrice = ({ input, output }: Price): number => input + output;
