import { isFree } from "../catalog/availability.ts";
import type { Model, Route } from "../catalog/catalog.ts";
import { autoVariant, FREE_SUFFIX } from "../catalog/model-name.ts";
import { NOT_SOON, type Refusal, refuse, refused } from "../units/errors/refusal.ts";
import { alternativesSentence, workingAlternatives } from "./alternatives.ts";
import { type Candidate, freeCandidates, type Planning, paidCandidates } from "./candidate.ts";
import { everyModelOnce, healthyFirst, soonestMs, stickyFirst, streamingFirst } from "./candidate-order.ts";
import { acrossModels, isLasting, preferredCandidates } from "./host-sort.ts";
import {
  allows,
  asksOpenTier,
  freeModels,
  isRouted,
  NOT_ALLOWED,
  notAllowed,
  type Suggest,
  unknownModel,
  unresolvable,
} from "./naming.ts";
import { withNativeFallbacks } from "./native-fallbacks.ts";
import type { RequestChanges } from "./overrides.ts";
import { notPermitted } from "./route-filter.ts";

/**
 * The hosts on which a request is tried, in order. A plan is made before money is held, because the hold covers its most
 * expensive route. Attempts never leave the plan.
 */
export interface Plan {
  readonly tier: "paid" | "open";
  /** At least one. */
  readonly candidates: readonly Candidate[];
  /** The route with which every process would begin each request; null if they may differ, and on the Open Tier. */
  readonly home: Route | null;
  /**
   * For `gateway/auto:<variant>`, the skipped models with the reasons, for `auto_unresolvable` if nothing is left to try.
   * Null otherwise.
   */
  readonly auto: { readonly skipped: readonly string[] } | null;
  /**
   * What follows a host's refusal, and its verdict on the request itself. With `models`, every failure moves on to
   * the next model; Auto moves on when the model declines, or the prompt turns out not to fit it; otherwise the
   * client gets the refusal or the verdict.
   */
  readonly movesOn: "always" | "unfit" | "never";
}

/**
 * The hosts on which a request may be tried, in order, or why there are none. Reads their present state and changes nothing.
 * The query's model is a published id, as `idMeantBy` finds it.
 */
export function makePlan(planning: Planning, suggest: Suggest): Plan | Refusal {
  const { model, catalog } = planning;
  const more = othersOf(planning);
  for (const name of more) if (!isRouted(name, catalog)) return unknownModel(name, suggest);
  return asksOpenTier(model, catalog) ? planFree(planning) : planPaid(planning, more);
}

/** `models` and `fallbacks`. */
function othersOf({ model, overrides }: Planning): readonly string[] {
  const { moreModels } = overrides;
  return moreModels.length === 0 ? moreModels : [...new Set(moreModels)].filter((id) => id !== model);
}

function planFree(planning: Planning): Plan | Refusal {
  const allowed = freeModels(planning, planning.catalog);
  if (refused(allowed)) return allowed;
  const candidates = allowed.flatMap((model) => streamingFirst(freeCandidates(model, planning), planning));
  if (candidates.length === 0) {
    const isBarred =
      planning.policy &&
      allowed.some((model) => freeCandidates(model, { ...planning, policy: null }).length > 0);
    return isBarred ? noFreeHost(planning) : noFreeRoute(planning, allowed);
  }
  const isAuto = autoVariant(planning.model) !== null;
  return {
    tier: "open",
    candidates: largeEnough(candidates, planning),
    home: null,
    auto: null,
    movesOn: isAuto ? "unfit" : "never",
  };
}

/** All of them if none fits: estimates err, and a count will show whether the prompt is really too long. */
function largeEnough(candidates: readonly Candidate[], { promptEstimate }: Planning): readonly Candidate[] {
  const fitting = candidates.filter(({ model }) => promptEstimate <= model.contextLength);
  return fitting.length === 0 ? candidates : fitting;
}

function planPaid(planning: Planning, more: readonly string[]): Plan | Refusal {
  const { model } = planning;
  const found =
    more.length === 0 ? candidatesOf(model, planning) : candidatesOfAll([model, ...more], planning);
  if (refused(found)) return found;
  const auto = autoVariant(model) !== null;
  const fallbacks = more.length > 0 || auto ? NONE : fallbackCandidates(planning);
  const preferred = acrossModels(found.candidates, planning);
  const healthy = healthyFirst(preferred, planning.routeState);
  const ordered = everyModelOnce(stickyFirst(healthy, planning), planning);
  const all = joined(ordered, fallbacks);
  const next = more.length > 0 ? more : idsOf(fallbacks);
  return {
    tier: "paid",
    candidates: withNativeFallbacks(all, joined(found.candidates, fallbacks), next, planning),
    home: healthy === preferred && isLasting(healthy, planning) ? healthy[0]!.route : null,
    auto: auto && more.length === 0 ? { skipped: found.skipped } : null,
    movesOn: more.length > 0 ? "always" : auto || fallbacks.length > 0 ? "unfit" : "never",
  };
}

/** The fallbacks in the model's own row, as far as they can serve the request. */
function fallbackCandidates(planning: Planning): readonly Candidate[] {
  const { fallbacks } = planning.catalog.models.get(planning.model)!;
  if (fallbacks === undefined) return NONE;
  const candidates = fallbacks.flatMap((id) => {
    const judged = judgeModel(id, planning);
    return "candidates" in judged ? judged.candidates : [];
  });
  return everyModelOnce(candidates, planning).map((candidate) => ({ ...candidate, isFallback: true }));
}

const NONE: readonly Candidate[] = [];

const idsOf = (candidates: readonly Candidate[]): readonly string[] => [
  ...new Set(candidates.map(({ model }) => model.id)),
];

const joined = (own: readonly Candidate[], fallbacks: readonly Candidate[]): readonly Candidate[] =>
  fallbacks.length === 0 ? own : [...own, ...fallbacks];

type FoundCandidates =
  | { readonly candidates: readonly Candidate[]; readonly skipped: readonly string[] }
  | Refusal;

/** A refusal of one model does not keep the next out of the plan. */
function candidatesOfAll(ids: readonly string[], planning: Planning): FoundCandidates {
  const found = ids.map((id) => candidatesOf(id, planning));
  const candidates = found.flatMap((one, at) => {
    if (refused(one)) return [];
    const changes = changesFor(ids[at]!, planning);
    return changes === undefined
      ? one.candidates
      : one.candidates.map((candidate) => ({ ...candidate, changes }));
  });
  // A model may be among those of an automatic route as well.
  const once = candidates.filter(
    (candidate, at) => candidates.findIndex(({ route }) => route === candidate.route) === at,
  );
  return once.length === 0 ? found[0]! : { candidates: once, skipped: [] };
}

/** As the first entry has them that names it. */
function changesFor(id: string, { model, overrides }: Planning): RequestChanges | undefined {
  const at = id === model ? -1 : overrides.moreModels.indexOf(id);
  const changes = at === -1 ? undefined : overrides.changes[at];
  return changes === undefined || Object.keys(changes).length === 0 ? undefined : changes;
}

/** For a name that is known. */
const candidatesOf = (name: string, planning: Planning): FoundCandidates =>
  autoVariant(name) === null
    ? directCandidates(planning.catalog.models.get(name)!, planning)
    : autoCandidates(name, planning);

function directCandidates(model: Model, planning: Planning): FoundCandidates {
  if (!allows(planning, model.id)) return notAllowed(planning, model.id, planning.catalog);
  const priced = paidCandidates(model, planning);
  if (priced.length === 0) return barredBy(planning, model) ?? noPrice(model, planning);
  const candidates = preferredCandidates(priced, planning);
  return refused(candidates) ? candidates : { candidates, skipped: [] };
}

function autoCandidates(name: string, planning: Planning): FoundCandidates {
  const ids = planning.catalog.auto.get(autoVariant(name)!)!;
  const candidates: Candidate[] = [];
  const skipped: string[] = [];
  const filtered: Refusal[] = [];
  const tooSmall: Candidate[] = [];
  let restMs = Infinity;
  for (const id of ids) {
    const judged = judgeModel(id, planning);
    if ("candidates" in judged) candidates.push(...judged.candidates);
    else {
      if (judged.filter !== undefined) filtered.push(judged.filter);
      tooSmall.push(...(judged.tooSmall ?? []));
      restMs = Math.min(restMs, judged.restMs ?? Infinity);
      skipped.push(`${id} (${judged.why})`);
    }
  }
  if (candidates.length > 0) return { candidates, skipped };
  // Estimates err. If the prompt is really too long, its count shows it, and `context_too_long` names the count.
  if (tooSmall.length > 0 && restMs === Infinity) return { candidates: tooSmall, skipped };
  if (filtered.length === ids.length) return filtered[0]!;
  return unresolvable(name, skipped, restMs);
}

type ModelVerdict =
  | { readonly candidates: readonly Candidate[] }
  | {
      readonly why: string;
      /** `provider` leaves none of its hosts. */
      readonly filter?: Refusal;
      /** It may be available again after this long. */
      readonly restMs?: number;
      /** Candidates that would serve a shorter prompt. */
      readonly tooSmall?: readonly Candidate[];
    };

function judgeModel(id: string, planning: Planning): ModelVerdict {
  const model = planning.catalog.models.get(id);
  if (model === undefined) return { why: "not in the catalog" };
  if (!allows(planning, id)) return { why: NOT_ALLOWED };
  const priced = paidCandidates(model, planning);
  if (priced.length === 0) {
    const barred = barredBy(planning, model);
    if (barred !== null)
      return { why: `the key's \`${barred.details.param}\` leaves no host`, filter: barred };
    return { why: model.routes.length === 0 ? "its hosts are paused" : "cannot price the request" };
  }
  const candidates = preferredCandidates(priced, planning);
  if (refused(candidates)) return { why: `${candidates.details.param} leaves no host`, filter: candidates };
  if (planning.promptEstimate > model.contextLength) {
    return { why: "context too small for the prompt", tooSmall: candidates };
  }
  const restMs = soonestMs(candidates, planning.routeState);
  return restMs === 0 ? { candidates } : { why: "unavailable", restMs };
}

/** Null where the model has no priced route without the key's policy either. */
const barredBy = ({ policy, surface }: Planning, model: Model): Refusal | null =>
  policy && paidCandidates(model, { surface }).length > 0 ? notPermitted(policy, model) : null;

function noPrice(model: Model, planning: Planning): Refusal {
  const why =
    model.routes.length === 0
      ? "the operator has paused all of them"
      : planning.catalog.lacksList === true
        ? "the operator's configuration no longer has the price list of this key"
        : "none has a price";
  const next = isFree(model, planning.routeState)
    ? `It is free on the Open Tier, under the id ${model.id}${FREE_SUFFIX}.`
    : alternativesSentence(workingAlternatives(model.id, planning));
  return refuse(
    "model_unavailable",
    `No host can serve ${model.id}: 0 hosts were tried, because ${why}. ${next}`,
    { param: "model", ...NOT_SOON },
  );
}

const noFreeHost = ({ model }: Planning): Refusal =>
  refuse(
    "no_free_route",
    `This key's \`policy\` leaves no verified free route of ${model}. The request was not switched to a paid model, and nothing was charged. Name a paid model, or have the owner of the balance change the \`policy\` of the key.`,
    { param: "policy", ...NOT_SOON },
  );

function noFreeRoute({ model }: Planning, allowed: readonly Model[]): Refusal {
  const kept = "The request was not switched to a paid model, and nothing was charged.";
  // Free routes are probed repeatedly, so one that fails may soon be verified.
  if (allowed.some(({ routes }) => routes.some(({ free }) => free))) {
    return refuse(
      "no_free_route",
      `No verified free route serves ${model} right now. ${kept} Retry later, or name a paid model; adding credit does not help.`,
    );
  }
  return refuse(
    "no_free_route",
    `There is no free route for ${model} here. ${kept} Name a paid model; for a free one, adding credit does not help.`,
    NOT_SOON,
  );
}
