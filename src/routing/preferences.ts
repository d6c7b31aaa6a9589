import type { Price } from "../catalog/catalog.ts";
import { type Refusal, refuse } from "../errors/refusal.ts";
import type { Cutoff, ProviderWishes, Sort } from "./provider-wishes.ts";
import { NO_WISHES } from "./provider-wishes.ts";
import { answersWhole, type Roads, type Stop, type Wish } from "./stop.ts";
import { streamingFirst } from "./stop-order.ts";

/**
 * One model's stops as `provider` wants them: filtered, then in its order. Where a filter leaves none, the
 * refusal names that filter.
 */
export function preferredStops(stops: readonly Stop[], wish: Wish, roads: Roads): readonly Stop[] | Refusal {
  const wishes = wish.overrides.provider;
  if (wishes === NO_WISHES) return unasked(stops, wish, roads);
  return obeying(wishes, stops, wish, roads);
}

/** As it is where the client wishes nothing. */
const unasked = (stops: readonly Stop[], wish: Wish, roads: Roads): readonly Stop[] =>
  wish.order === "price" ? drawn(stops, wish, roads) : streamingFirst(stops, wish);

function obeying(
  wishes: ProviderWishes,
  stops: readonly Stop[],
  wish: Wish,
  roads: Roads,
): readonly Stop[] | Refusal {
  let left = stops;
  for (const { name, applies, keeps } of FILTERS) {
    if (!applies(wishes)) continue;
    left = left.filter((stop) => keeps(stop, wishes, wish));
    if (left.length === 0) return noHostLeft(name, stops[0]!.model.id);
  }
  if (wishes.sort !== null) left = sorted(left, wishes.sort, roads);
  else left = unasked(left, wish, roads);
  if (wishes.order.length > 0) {
    return left.toSorted((a, b) => rank(wishes.order, a) - rank(wishes.order, b));
  }
  return wishes.allowFallbacks ? left : left.slice(0, 1);
}

/**
 * Wishes that compare the stops of all models with each other: sorting without partition, and preferred
 * speeds.
 */
export function acrossModels(stops: readonly Stop[], wish: Wish, roads: Roads): readonly Stop[] {
  const { sort, minThroughput, maxLatency } = wish.overrides.provider;
  const all = sort?.acrossModels ? sorted(stops, sort, roads) : stops;
  return minThroughput.length === 0 && maxLatency.length === 0
    ? all
    : fastFirst(all, minThroughput, maxLatency, roads);
}

function fastFirst(
  stops: readonly Stop[],
  minThroughput: readonly Cutoff[],
  maxLatency: readonly Cutoff[],
  roads: Roads,
): readonly Stop[] {
  const fast = (stop: Stop) => meets(stop, minThroughput, maxLatency, roads);
  return [...stops.filter(fast), ...stops.filter((stop) => !fast(stop))];
}

interface Filter {
  /** As the client spells it, below `provider`. */
  readonly name: string;
  applies(wishes: ProviderWishes): boolean;
  keeps(stop: Stop, wishes: ProviderWishes, wish: Wish): boolean;
}

const FILTERS: readonly Filter[] = [
  {
    name: "only",
    applies: ({ only }) => only !== null,
    keeps: ({ route }, { only }) => only!.includes(route.host.id.toLowerCase()),
  },
  {
    name: "ignore",
    applies: ({ ignore }) => ignore.length > 0,
    keeps: ({ route }, { ignore }) => !ignore.includes(route.host.id.toLowerCase()),
  },
  {
    name: "data_collection",
    applies: ({ dataCollection }) => dataCollection === "deny",
    keeps: ({ route: { host } }) =>
      host.privacy !== undefined && (host.privacy.collectsNothing || host.privacy.retainsNothing),
  },
  {
    name: "zdr",
    applies: ({ zdr }) => zdr,
    keeps: ({ route: { host } }) => host.privacy?.retainsNothing === true,
  },
  {
    name: "quantizations",
    applies: ({ quantizations }) => quantizations !== null,
    keeps: ({ route }, { quantizations }) => quantizations!.includes(route.quantization ?? "unknown"),
  },
  {
    name: "require_parameters",
    applies: ({ requireParameters }) => requireParameters,
    keeps: ({ route: { parameters } }, _, { members }) =>
      parameters === undefined || members.every((name) => UNIVERSAL.has(name) || parameters.has(name)),
  },
  {
    name: "max_price",
    applies: ({ maxPrice }) => maxPrice.prompt !== null || maxPrice.completion !== null,
    keeps: ({ price }, { maxPrice }) =>
      price.input <= (maxPrice.prompt ?? Infinity) && price.output <= (maxPrice.completion ?? Infinity),
  },
  {
    name: "order",
    applies: ({ order, allowFallbacks }) => order.length > 0 && !allowFallbacks,
    keeps: ({ route }, { order }) => order.includes(route.host.id.toLowerCase()),
  },
];

/** Parameters that every host accepts, or that the gateway itself reads. */
const UNIVERSAL = new Set([
  "model",
  "messages",
  "input",
  "instructions",
  "system",
  "stream",
  "stream_options",
  "max_tokens",
  "max_completion_tokens",
  "max_output_tokens",
  "models",
  "provider",
  "route",
  "fallbacks",
]);

const noHostLeft = (filter: string, model: string): Refusal =>
  refuse(
    "invalid_request",
    `\`provider.${filter}\` leaves no host that serves ${model}. Change or remove it.`,
    {
      param: `provider.${filter}`,
    },
  );

function rank(order: readonly string[], { route }: Stop): number {
  const at = order.indexOf(route.host.id.toLowerCase());
  return at === -1 ? order.length : at;
}

/**
 * Cheapest first, except that the first place is drawn among the working hosts, weighted by the inverse
 * square of the price, as OpenRouter does: hosts with the same price get equal shares, and one at twice the
 * price gets a quarter. Where a stream is wanted, hosts that cannot are left for last.
 */
function drawn(stops: readonly Stop[], wish: Wish, roads: Roads): readonly Stop[] {
  if (stops.length === 1) return stops;
  const cheapest = stops.toSorted((a, b) => plainPrice(a.price) - plainPrice(b.price));
  const ordered = streamingFirst(cheapest, wish);
  const working = ordered.filter(({ route }) => roads.restMs(route) === 0);
  const ready = wish.stream
    ? working.filter((stop) => answersWhole(stop) === answersWhole(working[0]!))
    : working;
  if (ready.length === 0) return ordered;
  const weights = ready.map(({ price }) => 1 / Math.max(plainPrice(price), LEAST_PRICE) ** 2);
  let left = roads.chance() * weights.reduce((sum, weight) => sum + weight, 0);
  const first = ready.find((_, at) => (left -= weights[at]!) < 0) ?? ready[0]!;
  return [first, ...ordered.filter((stop) => stop !== first)];
}

/** $0.001 per million, so that a price of zero does not get everything. */
const LEAST_PRICE = 1_000_000;

/** Routes without measurements come last, in their previous order. */
function sorted(stops: readonly Stop[], { by }: Sort, roads: Roads): Stop[] {
  const cost = ({ route, price }: Stop): number => {
    if (by === "price") return plainPrice(price);
    const speed = roads.speed(route);
    if (by === "latency") return speed?.firstTokenMs ?? Infinity;
    return -(speed?.tokensPerSecond ?? -Infinity);
  };
  const costs = new Map(stops.map((stop) => [stop, cost(stop)]));
  // The difference of two infinities is not a number.
  return stops.toSorted((a, b) => compare(costs.get(a)!, costs.get(b)!));
}

const compare = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0);

/** One number for a price, as OpenRouter sorts by: a prompt token and an answer token. */
const plainPrice = ({ input, output }: Price): number => input + output;

/** A route without measurements satisfies every preference. */
function meets(
  { route }: Stop,
  minThroughput: readonly Cutoff[],
  maxLatency: readonly Cutoff[],
  roads: Roads,
): boolean {
  const speed = roads.speed(route);
  if (speed === null) return true;
  return (
    minThroughput.every(({ share, bound }) => (speed.tokensPerSecondReached(share) ?? Infinity) >= bound) &&
    maxLatency.every(({ share, bound }) => (speed.firstTokenMsWithin(share) ?? 0) <= bound)
  );
}
