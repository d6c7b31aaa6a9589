import type { Catalog, Model } from "../catalog/catalog.ts";
import { isFree } from "../catalog/entry.ts";
import { autoVariant, FREE_SUFFIX } from "../catalog/model-name.ts";
import { NOT_SOON, type Refusal, refuse, refused } from "../errors/refusal.ts";
import { alternativesSentence, workingAlternatives } from "./alternatives.ts";
import {
  allows,
  asksOpenTier,
  freeModels,
  isRouted,
  NOT_ALLOWED,
  notAllowed,
  type Suggest,
  unknownId,
  unknownModel,
  unresolvable,
} from "./naming.ts";
import { acrossModels, preferredStops } from "./preferences.ts";
import { freeStops, paidStops, type Roads, type Stop, type Wish } from "./stop.ts";
import { everyModelOnce, healthyFirst, homeFirst, soonestMs, streamingFirst } from "./stop-order.ts";

/**
 * Which hosts a request is tried on, in order. A plan is made before money is held, because what is held is
 * the cost of its dearest route. Attempts then walk the plan and never leave it.
 */
export interface Plan {
  readonly tier: "paid" | "open";
  /** At least one. */
  readonly stops: readonly Stop[];
  /**
   * Named through `gateway/auto:<variant>`: then nothing left to try is `auto_unresolvable`, which also says
   * which candidates were skipped, and why. Null otherwise.
   */
  readonly auto: { readonly skipped: readonly string[] } | null;
  /**
   * What follows a host's verdict on the request itself. With `models`, every failure moves on to the next
   * model; Auto moves on when the prompt turns out not to fit the model; otherwise the client is told the
   * verdict.
   */
  readonly movesOn: "always" | "too_long" | "never";
}

/**
 * The hosts that a request may be tried on, in order, or why there are none. Only reads what is known of them
 * right now.
 */
export function makePlan(wish: Wish, catalog: Catalog, roads: Roads, suggest: Suggest): Plan | Refusal {
  const more = othersOf(wish);
  const unknown = unknownId(wish.model, catalog) ?? unknownOf(more, catalog);
  if (unknown !== null) return unknownModel(unknown, suggest);
  return asksOpenTier(wish.model, catalog)
    ? planFree(wish, catalog, roads)
    : planPaid(wish, more, catalog, roads);
}

/** `models` and `fallbacks`. */
function othersOf({ model, overrides }: Wish): readonly string[] {
  const { moreModels } = overrides;
  return moreModels.length === 0 ? moreModels : [...new Set(moreModels)].filter((id) => id !== model);
}

function unknownOf(names: readonly string[], catalog: Catalog): string | null {
  for (const name of names) if (!isRouted(name, catalog)) return name;
  return null;
}

function planFree(wish: Wish, catalog: Catalog, roads: Roads): Plan | Refusal {
  const allowed = freeModels(wish, catalog);
  if (refused(allowed)) return allowed;
  const stops = allowed.flatMap((model) => streamingFirst(freeStops(model, wish, roads), wish));
  if (stops.length === 0) return noFreeRoute(wish, allowed);
  const isAuto = autoVariant(wish.model) !== null;
  return {
    tier: "open",
    stops: largeEnough(stops, wish),
    auto: null,
    movesOn: isAuto ? "too_long" : "never",
  };
}

/** All of them where none is: estimates err, and a count will show whether the prompt really is too long. */
function largeEnough(stops: readonly Stop[], { promptEstimate }: Wish): readonly Stop[] {
  const fitting = stops.filter(({ model }) => promptEstimate <= model.contextLength);
  return fitting.length === 0 ? stops : fitting;
}

function planPaid(wish: Wish, more: readonly string[], catalog: Catalog, roads: Roads): Plan | Refusal {
  const found =
    more.length === 0
      ? stopsOf(wish.model, wish, catalog, roads)
      : stopsOfAll([wish.model, ...more], wish, catalog, roads);
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

type Found = { readonly stops: readonly Stop[]; readonly skipped: readonly string[] } | Refusal;

/** Whatever keeps one model out of the plan, the next may be in it. */
function stopsOfAll(ids: readonly string[], wish: Wish, catalog: Catalog, roads: Roads): Found {
  const found = ids.map((id) => stopsOf(id, wish, catalog, roads));
  const stops = found.flatMap((one) => (refused(one) ? [] : one.stops));
  // A model may be a candidate of an automatic route as well.
  const once = stops.filter((stop, at) => stops.findIndex(({ route }) => route === stop.route) === at);
  return once.length === 0 ? found[0]! : { stops: once, skipped: [] };
}

/** Of a name that is known. */
function stopsOf(name: string, wish: Wish, catalog: Catalog, roads: Roads): Found {
  return autoVariant(name) === null
    ? directStops(catalog.models.get(name)!, wish, catalog, roads)
    : autoStops(name, wish, catalog, roads);
}

function directStops(model: Model, wish: Wish, catalog: Catalog, roads: Roads): Found {
  if (!allows(wish, model.id)) return notAllowed(wish, model.id, catalog);
  const priced = paidStops(model, wish, roads);
  if (priced.length === 0) return noPrice(model, catalog, roads, wish);
  const stops = preferredStops(priced, wish, roads);
  return refused(stops) ? stops : { stops, skipped: [] };
}

function autoStops(name: string, wish: Wish, catalog: Catalog, roads: Roads): Found {
  const candidates = catalog.auto.get(autoVariant(name)!)!;
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
  // Estimates err. If the prompt really is too long, its count will show it, and `context_too_long` names
  // that count.
  if (tooSmall.length > 0 && restMs === Infinity) return { stops: tooSmall, skipped };
  if (filtered.length === candidates.length) return filtered[0]!;
  return unresolvable(name, skipped, restMs);
}

type Judged =
  | { readonly stops: readonly Stop[] }
  | {
      readonly why: string;
      /** `provider` leaves none of its hosts. */
      readonly filter?: Refusal;
      /** It may be available again after this long. */
      readonly restMs?: number;
      /** Stops that would serve a shorter prompt. */
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
      ? { why: "no host speaks an API that this endpoint can be translated to" }
      : { why: "cannot price the request" };
  }
  const stops = preferredStops(priced, wish, roads);
  if (refused(stops)) return { why: `${stops.details.param} leaves no host`, filter: stops };
  if (wish.promptEstimate > model.contextLength) {
    return { why: "context too small for the prompt", tooSmall: stops };
  }
  const restMs = soonestMs(stops, roads);
  return restMs === 0 ? { stops } : { why: "unavailable", restMs };
}

function noPrice(model: Model, catalog: Catalog, roads: Roads, wish: Wish): Refusal {
  if (model.routes.length === 0) return allPaused(model, catalog, roads, wish);
  const next = isFree(model, roads)
    ? `It is free on the Open Tier, under the id ${model.id}${FREE_SUFFIX}.`
    : alternativesSentence(workingAlternatives(model.id, catalog, roads, wish));
  return refuse(
    "model_unavailable",
    `No host can serve ${model.id}: 0 hosts were tried, because none both has a price and speaks an API that this endpoint can be translated to. ${next}`,
    { param: "model", ...NOT_SOON },
  );
}

const allPaused = (model: Model, catalog: Catalog, roads: Roads, wish: Wish): Refusal =>
  refuse(
    "model_unavailable",
    `No host can serve ${model.id}: 0 hosts were tried, because the operator has paused all of them. ${alternativesSentence(workingAlternatives(model.id, catalog, roads, wish))}`,
    { param: "model", ...NOT_SOON },
  );

const noFreeRoute = ({ model }: Wish, allowed: readonly Model[]): Refusal =>
  refuse(
    "no_free_route",
    `No verified free route serves ${model} right now. The request was not switched to a paid model, and nothing was charged. Retry later, or name a paid model; adding credit does not help.`,
    // Free routes are probed repeatedly, so one that fails may soon be verified.
    allowed.some(({ routes }) => routes.some(({ free }) => free)) ? {} : NOT_SOON,
  );
