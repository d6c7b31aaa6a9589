import { invalid, type Refusal, refused } from "../units/errors/refusal.ts";
import {
  type HostSort,
  isObject,
  NO_PREFERENCES,
  type ProviderPreferences,
  readNames,
  readProvider,
} from "./provider-preferences.ts";

/**
 * A client's preferences about routing, with OpenRouter's meaning: `models` and `fallbacks` are tried in order
 * after `model`; `provider` filters and orders the hosts. A preference that cannot be understood is refused, never
 * ignored.
 */
export interface Overrides {
  /** Models after the first, in order. */
  readonly moreModels: readonly string[];
  /** What `fallbacks` change in the request for each of them; empty where they change nothing. */
  readonly changes: readonly RequestChanges[];
  /** They are named in Anthropic's way, which some of its hosts act on by themselves. */
  readonly mayFallBackNatively: boolean;
  readonly provider: ProviderPreferences;
}

/** Members that a request has for one of its models instead of its own; null: it has none. */
export type RequestChanges = Readonly<Record<string, unknown>>;

export const NO_OVERRIDES: Overrides = {
  moreModels: [],
  changes: [],
  mayFallBackNatively: false,
  provider: NO_PREFERENCES,
};

type Raw = Readonly<{ models?: unknown; provider?: unknown; route?: unknown; fallbacks?: unknown }>;

/** The first that is named, whatever it says. */
export function namesOverrides(raw: Raw): string | null {
  for (const name of OVERRIDES) if (raw[name] !== undefined) return name;
  return null;
}

const OVERRIDES = ["models", "provider", "route", "fallbacks"] as const;

export function readOverrides(raw: Raw, surface: string): Overrides | Refusal {
  if (!OVERRIDES.some((name) => isGiven(raw[name]))) return NO_OVERRIDES;
  if (isGiven(raw.route) && raw.route !== "fallback") {
    return invalid("route", 'must be "fallback" or absent');
  }
  const named = readModels(raw, surface);
  if (refused(named)) return named;
  const provider = isGiven(raw.provider) ? readProvider(raw.provider) : NO_PREFERENCES;
  if (refused(provider)) return provider;
  return { ...named, provider };
}

/** A sort that `provider` names goes before the one at the end of the model's name. */
export const sortedBy = (sort: HostSort | null, overrides: Overrides): Overrides =>
  sort === null || overrides.provider.sort !== null
    ? overrides
    : { ...overrides, provider: { ...overrides.provider, sort } };

/** Models that a request may name next to the first. */
const MAX_MODELS = 8;
const MAX_FALLBACKS = 3;

type NamedModels = Pick<Overrides, "moreModels" | "changes" | "mayFallBackNatively">;

function readModels(raw: Raw, surface: string): NamedModels | Refusal {
  if (!isGiven(raw.fallbacks))
    return isGiven(raw.models) ? readList("models", raw.models, MAX_MODELS) : NO_MODELS;
  if (surface !== "messages") return invalid("fallbacks", "is read only on /v1/messages; use `models` here");
  if (isGiven(raw.models)) return invalid("fallbacks", "cannot be combined with `models`");
  // Anthropic's word for what the server has set up: the fallbacks in the model's own row.
  if (raw.fallbacks === "default") return { ...NO_MODELS, mayFallBackNatively: true };
  return readFallbacks(raw.fallbacks);
}

const NO_MODELS: NamedModels = { moreModels: [], changes: [], mayFallBackNatively: false };

/** Anthropic's form: one object a model, with what differs in the request for it (`BetaFallbackParam`). */
function readFallbacks(list: unknown): NamedModels | Refusal {
  if (!Array.isArray(list)) return invalid("fallbacks", 'must be "default" or an array of {model} objects');
  const stranger = list.findIndex((entry) => !isObject(entry));
  if (stranger !== -1) return invalid(`fallbacks[${stranger}]`, "must be a {model} object");
  const named = readList(
    "fallbacks",
    list.map(({ model }) => model),
    MAX_FALLBACKS,
  );
  if (refused(named)) return named;
  const changes: RequestChanges[] = [];
  for (const [at, { model: _model, ...members }] of list.entries()) {
    const problem = problemIn(members, `fallbacks[${at}]`);
    if (problem !== null) return problem;
    const { max_tokens: ceiling, ...others } = members;
    // Null removes a member, except the ceiling: that is then the request's.
    changes.push(isGiven(ceiling) ? members : others);
  }
  const isChanged = changes.some((members) => Object.keys(members).length > 0);
  return { ...named, changes: isChanged ? changes : [], mayFallBackNatively: list.length > 0 };
}

function problemIn(members: RequestChanges, path: string): Refusal | null {
  for (const [name, value] of Object.entries(members)) {
    const check = CHANGEABLE.get(name);
    if (check === undefined)
      return invalid(`${path}.${name}`, `is unknown; known are: model, ${[...CHANGEABLE.keys()].join(", ")}`);
    const wrong = value === null ? null : check(value);
    if (wrong !== null) return invalid(`${path}.${name}`, wrong);
  }
  return null;
}

const mustBeObject = (value: unknown) => (isObject(value) ? null : "must be an object or null");

const CHANGEABLE: ReadonlyMap<string, (value: unknown) => string | null> = new Map<
  string,
  (value: unknown) => string | null
>([
  [
    "max_tokens",
    (value) =>
      Number.isSafeInteger(value) && (value as number) > 0 ? null : "must be a whole number from 1",
  ],
  ["thinking", mustBeObject],
  ["output_config", mustBeObject],
  [
    "speed",
    (value) =>
      value === "standard" ? null : 'must be "standard" or null: others cost more than the price here',
  ],
]);

function readList(name: string, list: unknown, most: number): NamedModels | Refusal {
  const names = readNames(name, list, most);
  return refused(names) ? names : { ...NO_MODELS, moreModels: names };
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;
