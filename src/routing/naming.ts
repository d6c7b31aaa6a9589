import type { Catalog, Model } from "../catalog/catalog.ts";
import { autoVariant, FREE_AUTO_MODEL, FREE_SUFFIX, FREE_VARIANT } from "../catalog/model-name.ts";
import { NOT_SOON, type Refusal, refuse, refused, retryAfter } from "../units/errors/refusal.ts";
import type { RouteQuery } from "./candidate.ts";
import type { HostSort } from "./provider-preferences.ts";

/**
 * What the name in a request's `model` stands for, and whether the key may name it: decided by the catalog
 * and the key alone, whatever becomes of the hosts.
 */
export type Naming = Pick<RouteQuery, "model" | "allowedModels">;
type Allowed = Pick<RouteQuery, "allowedModels">;

/** The sentence that suggests the closest published id, and where the catalog is. */
export type Suggest = (id: string) => string;

/** Why a key may not name this model; null when it may. */
export function nameRefusal(naming: Naming, catalog: Catalog, suggest: Suggest): Refusal | null {
  const model = idMeantBy(naming.model, catalog, suggest);
  if (refused(model)) return model;
  if (asksOpenTier(model, catalog)) {
    const free = freeModels({ ...naming, model }, catalog);
    return refused(free) ? free : null;
  }
  const variant = autoVariant(model);
  if (variant === null) return allows(naming, model) ? null : notAllowed(naming, model, catalog);
  const candidates = catalog.auto.get(variant)!;
  if (candidates.some((id) => allows(naming, id))) return null;
  return unresolvable(
    model,
    candidates.map((id) => `${id} (${NOT_ALLOWED})`),
    Infinity,
  );
}

/**
 * The id that a request's name stands for: itself, where something is published under it; else the only id
 * that it fits. Refused where it fits none, or several.
 */
export function idMeantBy(requestedName: string, catalog: Catalog, suggest: Suggest): string | Refusal {
  const name = withoutSort(requestedName, catalog);
  const unknown = unknownId(name, catalog);
  if (unknown === null) return name;
  const tag = name.endsWith(FREE_SUFFIX) ? FREE_SUFFIX : "";
  const whole = catalog.shortNames.idsOf(name);
  const ids =
    whole.length > 0 || tag === ""
      ? whole
      : catalog.shortNames.idsOf(withoutFree(name)).map((id) => `${id}${tag}`);
  if (ids.length > 1) return severalModels(name, ids);
  return ids[0] ?? unknownModel(unknown, suggest);
}

/** How the hosts are sorted by a name's end, as OpenRouter has it; null where it says nothing of that. */
export function sortMeantBy(name: string, catalog: Catalog): HostSort | null {
  const plain = withoutSort(name, catalog);
  return plain === name ? null : { by: SORTS[name.slice(plain.length + 1) as SortName], acrossModels: false };
}

/** Not of a published id that ends so, nor of one that asks for the Open Tier, which has no such choice. */
function withoutSort(name: string, catalog: Catalog): string {
  const colon = name.lastIndexOf(":");
  if (colon === -1 || !Object.hasOwn(SORTS, name.slice(colon + 1))) return name;
  if (isRouted(name, catalog) || catalog.shortNames.idsOf(name).length > 0) return name;
  const plain = name.slice(0, colon);
  return plain === FREE_AUTO_MODEL || plain.endsWith(FREE_SUFFIX) ? name : plain;
}

const SORTS = { nitro: "throughput", floor: "price" } as const;
type SortName = keyof typeof SORTS;

export function idsMeantBy(
  names: readonly string[],
  catalog: Catalog,
  suggest: Suggest,
): readonly string[] | Refusal {
  if (names.length === 0) return names;
  const ids: string[] = [];
  for (const name of names) {
    const id = idMeantBy(name, catalog, suggest);
    if (refused(id)) return id;
    ids.push(id);
  }
  return ids;
}

const severalModels = (name: string, ids: readonly string[]): Refusal =>
  refuse(
    "unknown_model",
    `The model \`${name}\` may mean any of ${ids.length}: ${ids.slice(0, MAX_LISTED).join(", ")}. Send one of these ids.`,
    { param: "model" },
  );

const MAX_LISTED = 8;

/** Open Tier: `gateway/auto:free`, or `<author>/<name>:free` where that is not itself a published id. */
export function asksOpenTier(model: string, catalog: Catalog): boolean {
  return (
    model === FREE_AUTO_MODEL ||
    (model.endsWith(FREE_SUFFIX) && !catalog.models.has(model) && autoVariant(model) === null)
  );
}

/** The id by which a name asks for what nobody published; null when all is known. */
function unknownId(name: string, catalog: Catalog): string | null {
  if (name === FREE_AUTO_MODEL || isRouted(name, catalog)) return null;
  if (!asksOpenTier(name, catalog)) return name;
  const id = withoutFree(name);
  return catalog.models.has(id) ? null : id;
}

/** A published model, or an automatic route. */
export function isRouted(name: string, { models, auto }: Catalog): boolean {
  const variant = autoVariant(name);
  return variant === null ? models.has(name) : auto.has(variant);
}

/** The models that may serve a name which is known, if every key could call them. */
export function modelsBehind(name: string, catalog: Catalog): readonly Model[] {
  const variant = autoVariant(name);
  const ids = asksOpenTier(name, catalog)
    ? freeIds(name, catalog)
    : variant === null
      ? [name]
      : catalog.auto.get(variant)!;
  return knownOf(ids, catalog);
}

/**
 * The models that a name of the Open Tier asks for, and that the key may call by their own ids or by that
 * name.
 */
export function freeModels(naming: Naming, catalog: Catalog): readonly Model[] | Refusal {
  const { model } = naming;
  const known = knownOf(freeIds(model, catalog), catalog);
  const allowed = known.filter(({ id }) => allows(naming, id) || allows(naming, model));
  return known.length > 0 && allowed.length === 0 ? notAllowed(naming, model, catalog) : allowed;
}

const freeIds = (name: string, catalog: Catalog): readonly string[] =>
  name === FREE_AUTO_MODEL ? freeCandidates(catalog) : [withoutFree(name)];

const knownOf = (ids: readonly string[], { models }: Catalog): readonly Model[] =>
  ids.flatMap((id) => models.get(id) ?? []);

const withoutFree = (name: string): string => name.slice(0, -FREE_SUFFIX.length);

/** The operator's list, or every model with a free route. */
const freeCandidates = (catalog: Catalog): readonly string[] =>
  catalog.auto.get(FREE_VARIANT) ??
  [...catalog.models.values()].filter(({ routes }) => routes.some(({ free }) => free)).map(({ id }) => id);

export const allows = ({ allowedModels }: Allowed, id: string): boolean =>
  allowedModels === null || allowedModels.includes(id);

export function unknownModel(id: string, suggest: Suggest): Refusal {
  const shown = id.length > MAX_SHOWN ? `${id.slice(0, MAX_SHOWN)}…` : id;
  return refuse("unknown_model", `The model \`${shown}\` is not in the catalog. ${suggest(id)}`, {
    param: "model",
  });
}

const MAX_SHOWN = 100;

export function notAllowed({ allowedModels }: Allowed, id: string, catalog: Catalog): Refusal {
  // A key may list models that will be published later; a slip of the pen looks the same.
  const listed = allowedModels!.map((name) =>
    unknownId(name, catalog) === null ? name : `${name} (not in the catalog)`,
  );
  return refuse("invalid_request", `This key may not call \`${id}\`. It may call: ${listed.join(", ")}.`, {
    param: "model",
  });
}

/** Why a candidate of an automatic route was skipped. */
export const NOT_ALLOWED = "not allowed on this key";

/** `skipped` are all candidates, with why; `restMs` is when the first may be available again. */
export const unresolvable = (model: string, skipped: readonly string[], restMs: number): Refusal =>
  refuse(
    "auto_unresolvable",
    `No candidate of ${model} can serve this request: ${skipped.join(", ")}.`,
    restMs === Infinity ? NOT_SOON : retryAfter(Math.ceil(restMs / 1_000)),
  );
