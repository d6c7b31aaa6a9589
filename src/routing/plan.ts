import type { Catalog, Model } from "../catalog/catalog.ts";
import {
  AUTO_PREFIX,
  autoVariant,
  FREE_AUTO_MODEL,
  FREE_SUFFIX,
  FREE_VARIANT,
} from "../catalog/model-name.ts";
import { NOT_SOON, type Refusal, refuse, refused, retryAfter } from "../errors/refusal.ts";
import type { Home } from "./affinity.ts";
import { acrossModels, preferredStops } from "./preferences.ts";
import { freeStops, paidStops, type Roads, type Stop, type Wish } from "./stop.ts";

/**
 * Which hosts a request is tried on, in order. A plan is made before money is held, because the hold is the dearest of
 * its routes; attempts then walk it and never leave it.
 */
export interface Plan {
  readonly tier: "paid" | "open";
  /** At least one. */
  readonly stops: readonly Stop[];
  /**
   * Named through `gateway/auto:<variant>`: then nothing left to try is `auto_unresolvable`, which also says which
   * candidates were skipped, and why. Null otherwise.
   */
  readonly auto: { readonly skipped: readonly string[] } | null;
  /**
   * What a host's verdict on the request itself leads to. With `models`, every failure moves on to the next model; Auto
   * moves on from a model that the prompt turns out not to fit; otherwise the client hears the verdict.
   */
  readonly movesOn: "always" | "too_long" | "never";
}

/**
 * The hosts that a request may be tried on, in order; or why there are none. Looks at what is known of them right now, and takes
 * nothing.
 */
export function makePlan(wish: Wish, catalog: Catalog, roads: Roads, suggest: Suggest): Plan | Refusal {
  if (asksOpenTier(wish.model, catalog)) return planFree(wish, catalog, roads, suggest);
  const more = othersOf(wish);
  const found =
    more.length === 0
      ? stopsOf(wish.model, wish, catalog, roads, suggest)
      : stopsOfAll([wish.model, ...more], wish, catalog, roads, suggest);
  if (refused(found)) return found;
  const auto = autoVariant(wish.model) !== null;
  return {
    tier: "paid",
    stops: everyModelOnce(
      homeFirst(healthyFirst(acrossModels(found.stops, wish, roads), roads), wish, roads),
      wish,
    ),
    auto: auto && more.length === 0 ? { skipped: found.skipped } : null,
    movesOn: more.length > 0 ? "always" : auto ? "too_long" : "never",
  };
}

/** Why a key may not name this model, whatever becomes of the request; null when it may. No host is looked at. */
export function nameRefusal(wish: Named, catalog: Catalog, suggest: Suggest): Refusal | null {
  const { model } = wish;
  const variant = autoVariant(model);
  const found = asksOpenTier(model, catalog)
    ? freeModels(wish, catalog, suggest)
    : variant === null
      ? directModel(model, wish, catalog, suggest)
      : autoModels(variant, wish, catalog, suggest);
  return refused(found) ? found : null;
}

function othersOf({ model, overrides }: Wish): readonly string[] {
  const { moreModels } = overrides;
  return moreModels.length === 0 ? moreModels : [...new Set(moreModels)].filter((id) => id !== model);
}

/** Open Tier: `gateway/auto:free`, or `<author>/<name>:free` where that is not itself a published id. */
export function asksOpenTier(model: string, catalog: Catalog): boolean {
  return (
    model === FREE_AUTO_MODEL ||
    (model.endsWith(FREE_SUFFIX) && !catalog.models.has(model) && autoVariant(model) === null)
  );
}

function stopsOf(id: string, wish: Wish, catalog: Catalog, roads: Roads, suggest: Suggest): Found {
  const variant = autoVariant(id);
  return variant === null
    ? directStops(id, wish, catalog, roads, suggest)
    : autoStops(variant, wish, catalog, roads, suggest);
}

type Found = { readonly stops: readonly Stop[]; readonly skipped: readonly string[] } | Refusal;

/** `models` and `fallbacks`: whatever keeps one model from being planned, the next is. */
function stopsOfAll(
  ids: readonly string[],
  wish: Wish,
  catalog: Catalog,
  roads: Roads,
  suggest: Suggest,
): Found {
  const found = ids.map((id) => stopsOf(id, wish, catalog, roads, suggest));
  const unknown = found.find((one) => refused(one) && one.code === "unknown_model");
  if (unknown !== undefined) return unknown;
  const stops = found.flatMap((one) => (refused(one) ? [] : one.stops));
  // A model may be a candidate of an automatic route as well.
  const once = stops.filter((stop, at) => stops.findIndex(({ route }) => route === stop.route) === at);
  return once.length === 0 ? found[0]! : { stops: once, skipped: [] };
}

function directStops(id: string, wish: Wish, catalog: Catalog, roads: Roads, suggest: Suggest): Found {
  const model = directModel(id, wish, catalog, suggest);
  if (refused(model)) return model;
  const priced = paidStops(model, wish, roads);
  if (priced.length === 0) return noPrice(model, catalog, roads, wish);
  const stops = preferredStops(priced, wish, roads);
  return refused(stops) ? stops : { stops, skipped: [] };
}

function directModel(id: string, wish: Allowed, catalog: Catalog, suggest: Suggest): Model | Refusal {
  const model = catalog.models.get(id);
  if (model === undefined) return unknownModel(id, suggest);
  return allows(wish, id) ? model : notAllowed(wish, id);
}

function autoStops(variant: string, wish: Wish, catalog: Catalog, roads: Roads, suggest: Suggest): Found {
  const candidates = catalog.auto.get(variant);
  if (candidates === undefined) return unknownModel(`${AUTO_PREFIX}${variant}`, suggest);
  const stops: Stop[] = [];
  const skipped: string[] = [];
  const filtered: Refusal[] = [];
  const tooSmall: Stop[] = [];
  let restMs = Infinity;
  for (const id of candidates) {
    const judged = judgeCandidate(id, wish, catalog, roads);
    if ("stops" in judged) stops.push(...judged.stops);
    else {
      if (judged.filter !== undefined) filtered.push(judged.filter);
      tooSmall.push(...(judged.tooSmall ?? []));
      restMs = Math.min(restMs, judged.restMs ?? Infinity);
      skipped.push(`${id} (${judged.why})`);
    }
  }
  if (stops.length > 0) return { stops, skipped };
  // Estimates err, and a prompt that is too long stays so: then its count decides, and `context_too_long` names it.
  if (tooSmall.length > 0 && restMs === Infinity) return { stops: tooSmall, skipped };
  if (filtered.length === candidates.length) return filtered[0]!;
  return unresolvable(variant, skipped, restMs);
}

const unresolvable = (variant: string, skipped: readonly string[], restMs: number): Refusal =>
  refuse(
    "auto_unresolvable",
    `No candidate of ${AUTO_PREFIX}${variant} can serve this request: ${skipped.join(", ")}.`,
    restMs === Infinity ? NOT_SOON : retryAfter(Math.ceil(restMs / 1_000)),
  );

function autoModels(
  variant: string,
  wish: Allowed,
  catalog: Catalog,
  suggest: Suggest,
): readonly string[] | Refusal {
  const candidates = catalog.auto.get(variant);
  if (candidates === undefined) return unknownModel(`${AUTO_PREFIX}${variant}`, suggest);
  const allowed = candidates.filter((id) => allows(wish, id));
  if (allowed.length > 0) return allowed;
  return unresolvable(
    variant,
    candidates.map((id) => `${id} (${NOT_ALLOWED})`),
    Infinity,
  );
}

type Judged =
  | { readonly stops: readonly Stop[] }
  | {
      readonly why: string;
      /** `provider` leaves none of its hosts. */
      readonly filter?: Refusal;
      /** It may be available again after so long. */
      readonly restMs?: number;
      /** Would serve a shorter prompt. */
      readonly tooSmall?: readonly Stop[];
    };

function judgeCandidate(id: string, wish: Wish, catalog: Catalog, roads: Roads): Judged {
  const model = catalog.models.get(id);
  if (model === undefined) return { why: "not in the catalog" };
  if (!allows(wish, id)) return { why: NOT_ALLOWED };
  const priced = paidStops(model, wish, roads);
  if (priced.length === 0) {
    if (model.routes.length === 0) return { why: "its hosts are paused" };
    return model.routes.some(({ free, price }) => !free && price !== null)
      ? { why: "no host speaks a language that this endpoint can be served in" }
      : { why: "cannot price the request" };
  }
  const stops = preferredStops(priced, wish, roads);
  if (refused(stops)) return { why: `no host left by ${stops.details.param}`, filter: stops };
  if (wish.promptEstimate > model.contextLength) {
    return { why: "context too small for the prompt", tooSmall: stops };
  }
  const restMs = soonestMs(stops, roads);
  return restMs === 0 ? { stops } : { why: "unavailable", restMs };
}

const NOT_ALLOWED = "not allowed on this key";

/** When the first of these hosts takes requests again, in milliseconds from now; 0 when one does already. */
export const soonestMs = (stops: readonly Stop[], roads: Roads): number =>
  Math.min(...stops.map(({ route }) => roads.restMs(route)));

/**
 * Hosts that rest, because they are known to fail, are left out, but never more than half of a model's: if most seem to
 * fail, the knowledge may be wrong, and the others would get all of the load. Those that stay are tried last.
 */
function healthyFirst(stops: readonly Stop[], roads: Roads): readonly Stop[] {
  for (const { route } of stops) if (roads.restMs(route) > 0) return restingLast(stops, roads);
  return stops;
}

function restingLast(stops: readonly Stop[], roads: Roads): readonly Stop[] {
  // From here on asked once for each: meanwhile a rest may end.
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

/** A conversation stays where it was served before, while that host works and the client has no order of its own. */
function homeFirst(stops: readonly Stop[], { home, overrides }: Wish, roads: Roads): readonly Stop[] {
  const { order, sort } = overrides.provider;
  if (home === null || order.length > 0 || sort !== null) return stops;
  const at = placeOf(home, stops);
  if (at <= 0 || roads.restMs(stops[at]!.route) > 0) return stops;
  return [stops[at]!, ...stops.slice(0, at), ...stops.slice(at + 1)];
}

function placeOf({ host, hostModel, model }: Home, stops: readonly Stop[]): number {
  return stops.findIndex(
    (stop) => stop.route.host.id === host && stop.route.model === hostModel && stop.model.id === model,
  );
}

/** Only so many hosts are tried: each model gets one of the tries before a model gets its second. */
function everyModelOnce(stops: readonly Stop[], { maxHosts, overrides }: Wish): readonly Stop[] {
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

function planFree(wish: Wish, catalog: Catalog, roads: Roads, suggest: Suggest): Plan | Refusal {
  const allowed = freeModels(wish, catalog, suggest);
  if (refused(allowed)) return allowed;
  const stops = allowed.flatMap((model) => freeStops(model, wish, roads));
  if (stops.length === 0) {
    const probed = allowed.some(({ routes }) => routes.some(({ free }) => free));
    return refuse(
      "no_free_route",
      `No verified free route serves ${wish.model} right now. The request was not switched to a paid model and nothing was charged; adding credit does not help.`,
      probed ? {} : NOT_SOON,
    );
  }
  return { tier: "open", stops, auto: null, movesOn: "never" };
}

function freeModels(wish: Named, catalog: Catalog, suggest: Suggest): readonly Model[] | Refusal {
  const ids =
    wish.model === FREE_AUTO_MODEL ? freeCandidates(catalog) : [wish.model.slice(0, -FREE_SUFFIX.length)];
  const known = ids.flatMap((id) => catalog.models.get(id) ?? []);
  if (known.length === 0 && wish.model !== FREE_AUTO_MODEL) return unknownModel(ids[0]!, suggest);
  const allowed = known.filter(({ id }) => allows(wish, id) || allows(wish, wish.model));
  return known.length > 0 && allowed.length === 0 ? notAllowed(wish, wish.model) : allowed;
}

/** The operator's list, or every model with a free route. */
const freeCandidates = (catalog: Catalog): readonly string[] =>
  catalog.auto.get(FREE_VARIANT) ??
  [...catalog.models.values()].filter(({ routes }) => routes.some(({ free }) => free)).map(({ id }) => id);

const allows = ({ allowedModels }: Allowed, id: string): boolean =>
  allowedModels === null || allowedModels.includes(id);

type Allowed = Pick<Wish, "allowedModels">;
type Named = Pick<Wish, "model" | "allowedModels">;
type Suggest = (id: string) => string;

function unknownModel(id: string, suggest: Suggest): Refusal {
  const shown = id.length > MAX_SHOWN ? `${id.slice(0, MAX_SHOWN)}…` : id;
  return refuse("unknown_model", `The model \`${shown}\` is not in the catalog. ${suggest(id)}`, {
    param: "model",
  });
}

const MAX_SHOWN = 100;

const notAllowed = ({ allowedModels }: Allowed, id: string): Refusal =>
  refuse("invalid_request", `This key may not call \`${id}\`. It may call: ${allowedModels!.join(", ")}.`, {
    param: "model",
  });

function noPrice(model: Model, catalog: Catalog, roads: Roads, wish: Wish): Refusal {
  if (model.routes.length === 0) return allPaused(model, catalog, roads, wish);
  const free = model.routes.some((route) => route.free && roads.verifiedFree(route));
  const next = free
    ? `It is free on the Open Tier: name it ${model.id}${FREE_SUFFIX}.`
    : alternativesSentence(workingAlternatives(model.id, catalog, roads, wish));
  return refuse(
    "model_unavailable",
    `No host can serve ${model.id}: none was tried, because none has a price and speaks a language that this endpoint can be served in. ${next}`,
    { param: "model", ...NOT_SOON },
  );
}

const allPaused = (model: Model, catalog: Catalog, roads: Roads, wish: Wish): Refusal =>
  refuse(
    "model_unavailable",
    `No host can serve ${model.id}: none was tried, because the operator has paused all of its hosts. ${alternativesSentence(workingAlternatives(model.id, catalog, roads, wish))}`,
    { param: "model", ...NOT_SOON },
  );

/** How many alternatives a message names. */
const MAX_ALTERNATIVES = 3;

/** Models that a request could be sent to instead: allowed, priced, and on a host that works. */
export function workingAlternatives(
  except: string,
  catalog: Catalog,
  roads: Roads,
  wish: Pick<Wish, "surface" | "allowedModels">,
): string[] {
  const ids: string[] = [];
  for (const model of catalog.models.values()) {
    if (ids.length === MAX_ALTERNATIVES) break;
    if (model.id === except || !allows(wish, model.id)) continue;
    if (paidStops(model, wish, roads).some(({ route }) => roads.restMs(route) === 0)) ids.push(model.id);
  }
  return ids;
}

export const alternativesSentence = (ids: readonly string[]): string =>
  ids.length === 0
    ? "No other model of the catalog works right now."
    : `Working alternatives: ${ids.join(", ")}.`;
