import type { Catalog, Model, Price, Route, SurfaceName } from "../catalog/catalog.ts";
import { AUTO_PREFIX, FREE_SUFFIX, FREE_VARIANT } from "../catalog/model-name.ts";
import { type Refusal, refuse, refused } from "../errors/refusal.ts";
import type { Overrides, ProviderWishes } from "./overrides.ts";

/**
 * Which hosts a request is tried on, in order. A plan is made before money is held, because the hold is the dearest of
 * its routes; attempts then walk it and never leave it.
 */
export interface Plan {
  readonly tier: "paid" | "open";
  /** At least one. */
  readonly stops: readonly Stop[];
  /** Named through `gateway/auto:<variant>`: then nothing left to try is `auto_unresolvable`. */
  readonly auto: boolean;
}

export interface Stop {
  readonly model: Model;
  readonly route: Route;
  /** Zero on the Open Tier. */
  readonly price: Price;
  /** The language that the host is spoken to in: the client's own where it can be. */
  readonly hostSurface: SurfaceName;
}

/** What a request asks of routing. */
export interface Wish {
  readonly model: string;
  readonly surface: SurfaceName;
  readonly overrides: Overrides;
  readonly allowedModels: readonly string[] | null;
  readonly promptEstimate: number;
}

/** What is known of the hosts right now. */
export interface Roads {
  /** False while the host is known to fail. */
  usable(route: Route): boolean;
  /** A free route answers, and its host reports no charge. */
  verifiedFree(route: Route): boolean;
  /** Whether a client of the one language can be served by a host of the other. */
  joins(client: SurfaceName, host: SurfaceName): boolean;
}

const FREE_AUTO_MODEL = `${AUTO_PREFIX}${FREE_VARIANT}`;

export function makePlan(
  wish: Wish,
  catalog: Catalog,
  roads: Roads,
  suggest: (id: string) => string,
): Plan | Refusal {
  if (asksOpenTier(wish.model, catalog)) return planFree(wish, catalog, roads, suggest);
  const variant = autoVariant(wish.model);
  const first =
    variant === null
      ? planDirect(wish.model, wish, catalog, roads, suggest)
      : planAuto(variant, wish, catalog, roads, suggest);
  if (wish.overrides.moreModels.length === 0) return first;
  return planMore(first, wish, catalog, roads, suggest);
}

/** Open Tier: `gateway/auto:free`, or `<author>/<name>:free` where that is not itself a published id. */
export function asksOpenTier(model: string, catalog: Catalog): boolean {
  return (
    model === FREE_AUTO_MODEL ||
    (model.endsWith(FREE_SUFFIX) && !catalog.models.has(model) && autoVariant(model) === null)
  );
}

function autoVariant(model: string): string | null {
  return model.startsWith(AUTO_PREFIX) ? model.slice(AUTO_PREFIX.length) : null;
}

function planDirect(
  id: string,
  wish: Wish,
  catalog: Catalog,
  roads: Roads,
  suggest: Suggest,
): Plan | Refusal {
  const model = catalog.models.get(id);
  if (model === undefined) return unknownModel(id, suggest);
  if (!allows(wish, id)) return notAllowed(wish, id);
  const priced = paidStops(model, wish, roads);
  if (priced.length === 0) return noPrice(model, catalog, roads, wish);
  const stops = wishedStops(priced, wish.overrides.provider);
  return refused(stops) ? stops : { tier: "paid", stops: healthyFirst(stops, roads), auto: false };
}

function planAuto(
  variant: string,
  wish: Wish,
  catalog: Catalog,
  roads: Roads,
  suggest: Suggest,
): Plan | Refusal {
  const candidates = catalog.auto.get(variant);
  if (candidates === undefined) return unknownModel(`${AUTO_PREFIX}${variant}`, suggest);
  const stops: Stop[] = [];
  const skipped: string[] = [];
  for (const id of candidates) {
    const judged = judgeCandidate(id, wish, catalog, roads);
    if (typeof judged === "string") skipped.push(`${id} (${judged})`);
    else stops.push(...judged);
  }
  if (stops.length === 0) {
    return refuse(
      "auto_unresolvable",
      `No candidate of ${AUTO_PREFIX}${variant} can serve this request: ${skipped.join(", ")}.`,
    );
  }
  return { tier: "paid", stops, auto: true };
}

/** The candidate's stops, or why it is skipped. */
function judgeCandidate(id: string, wish: Wish, catalog: Catalog, roads: Roads): Stop[] | string {
  const model = catalog.models.get(id);
  if (model === undefined) return "not in the catalog";
  if (!allows(wish, id)) return "not allowed on this key";
  if (wish.promptEstimate > model.contextLength) return "context too small for the prompt";
  const priced = paidStops(model, wish, roads);
  if (priced.length === 0) return "cannot price the request";
  const stops = wishedStops(priced, wish.overrides.provider);
  if (refused(stops)) return "no host left by provider";
  const usable = stops.filter(({ route }) => roads.usable(route));
  return usable.length === 0 ? "unavailable" : usable;
}

/** `models` and `fallbacks`: whatever keeps one model from being planned, the next is tried. */
function planMore(
  first: Plan | Refusal,
  wish: Wish,
  catalog: Catalog,
  roads: Roads,
  suggest: Suggest,
): Plan | Refusal {
  const plans = [first];
  for (const id of wish.overrides.moreModels) {
    const variant = autoVariant(id);
    plans.push(
      variant === null
        ? planDirect(id, wish, catalog, roads, suggest)
        : planAuto(variant, wish, catalog, roads, suggest),
    );
  }
  const unknown = plans.find((plan) => refused(plan) && plan.code === "unknown_model");
  if (unknown !== undefined) return unknown;
  const stops = plans.flatMap((plan) => (refused(plan) ? [] : plan.stops));
  return stops.length === 0 ? first : { tier: "paid", stops, auto: false };
}

function planFree(wish: Wish, catalog: Catalog, roads: Roads, suggest: Suggest): Plan | Refusal {
  const ids =
    wish.model === FREE_AUTO_MODEL ? freeCandidates(catalog) : [wish.model.slice(0, -FREE_SUFFIX.length)];
  const known = ids.flatMap((id) => catalog.models.get(id) ?? []);
  if (known.length === 0 && wish.model !== FREE_AUTO_MODEL) return unknownModel(ids[0]!, suggest);
  const allowed = known.filter(({ id }) => allows(wish, id) || allows(wish, wish.model));
  if (known.length > 0 && allowed.length === 0) return notAllowed(wish, wish.model);
  const stops = allowed.flatMap((model) => freeStops(model, wish, roads));
  if (stops.length === 0) {
    return refuse(
      "no_free_route",
      `No verified free route serves ${wish.model} right now. The request was not switched to a paid model and nothing was charged; adding credit does not help.`,
    );
  }
  return { tier: "open", stops, auto: false };
}

/** The operator's list, or every model with a free route. */
const freeCandidates = (catalog: Catalog): readonly string[] =>
  catalog.auto.get("free") ??
  [...catalog.models.values()].filter(({ routes }) => routes.some(({ free }) => free)).map(({ id }) => id);

const FREE_PRICE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } as Price;

function freeStops(model: Model, wish: Wish, roads: Roads): Stop[] {
  return model.routes.flatMap((route) => {
    const hostSurface = speakTo(route, wish.surface, roads);
    const serves = route.free && hostSurface !== null && roads.verifiedFree(route) && roads.usable(route);
    return serves ? [{ model, route, price: FREE_PRICE, hostSurface }] : [];
  });
}

/** Routes that can be billed: never a free one, never one without a price. */
function paidStops(model: Model, wish: Wish, roads: Roads): Stop[] {
  return model.routes.flatMap((route) => {
    const hostSurface = speakTo(route, wish.surface, roads);
    return route.free || route.price === null || hostSurface === null
      ? []
      : [{ model, route, price: route.price, hostSurface }];
  });
}

function speakTo({ host }: Route, client: SurfaceName, roads: Roads): SurfaceName | null {
  if (host.speaks.includes(client)) return client;
  return host.speaks.find((surface) => roads.joins(client, surface)) ?? null;
}

function wishedStops(stops: readonly Stop[], wishes: ProviderWishes): readonly Stop[] | Refusal {
  const { only, ignore, order, allowFallbacks, sort, maxPrice } = wishes;
  const filters: [string, (stop: Stop) => boolean][] = [
    ["only", ({ route }) => only === null || only.includes(route.host.id)],
    ["ignore", ({ route }) => !ignore.includes(route.host.id)],
    [
      "max_price",
      ({ price }) =>
        price.input <= (maxPrice.prompt ?? Infinity) && price.output <= (maxPrice.completion ?? Infinity),
    ],
    ["allow_fallbacks", ({ route }) => allowFallbacks || order.length === 0 || order.includes(route.host.id)],
  ];
  let left = stops;
  for (const [name, keeps] of filters) {
    left = left.filter(keeps);
    if (left.length === 0) {
      return refuse(
        "invalid_request",
        `\`provider.${name}\` leaves no host that serves ${stops[0]!.model.id}.`,
        { param: `provider.${name}` },
      );
    }
  }
  if (sort === "price")
    left = [...left].sort((a, b) => a.price.input + a.price.output - b.price.input - b.price.output);
  const ordered = [...left].sort((a, b) => rank(order, a) - rank(order, b));
  return allowFallbacks || order.length > 0 ? ordered : ordered.slice(0, 1);
}

function rank(order: readonly string[], { route }: Stop): number {
  const at = order.indexOf(route.host.id);
  return at === -1 ? order.length : at;
}

/** A host that is known to fail is not left out, only tried last: the knowledge may be old. */
const healthyFirst = (stops: readonly Stop[], roads: Roads): Stop[] => [
  ...stops.filter(({ route }) => roads.usable(route)),
  ...stops.filter(({ route }) => !roads.usable(route)),
];

const allows = ({ allowedModels }: Wish, id: string): boolean =>
  allowedModels === null || allowedModels.includes(id);

type Suggest = (id: string) => string;

const unknownModel = (id: string, suggest: Suggest): Refusal =>
  refuse("unknown_model", `The model \`${id}\` is not in the catalog. ${suggest(id)}`, { param: "model" });

const notAllowed = ({ allowedModels }: Wish, id: string): Refusal =>
  refuse("invalid_request", `This key may not call \`${id}\`. It may call: ${allowedModels!.join(", ")}.`, {
    param: "model",
  });

function noPrice(model: Model, catalog: Catalog, roads: Roads, wish: Wish): Refusal {
  const free = model.routes.some((route) => route.free && roads.verifiedFree(route));
  const next = free
    ? `It is free on the Open Tier: name it ${model.id}${FREE_SUFFIX}.`
    : alternativesSentence(workingAlternatives(model.id, catalog, roads, wish));
  return refuse(
    "model_unavailable",
    `No host can serve ${model.id}: none was tried, because none has a price and speaks a language that this endpoint can be served in. ${next}`,
    { param: "model" },
  );
}

/** How many alternatives a message names. */
const MAX_ALTERNATIVES = 3;

/** Models that a request could be sent to instead: allowed, priced, and on a host that works. */
export function workingAlternatives(except: string, catalog: Catalog, roads: Roads, wish: Wish): string[] {
  const ids: string[] = [];
  for (const model of catalog.models.values()) {
    if (ids.length === MAX_ALTERNATIVES) break;
    if (model.id === except || !allows(wish, model.id)) continue;
    if (paidStops(model, wish, roads).some(({ route }) => roads.usable(route))) ids.push(model.id);
  }
  return ids;
}

export const alternativesSentence = (ids: readonly string[]): string =>
  ids.length === 0
    ? "No other model of the catalog works right now."
    : `Working alternatives: ${ids.join(", ")}.`;
