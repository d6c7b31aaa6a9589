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
  readonly provider: ProviderPreferences;
}

export const NO_OVERRIDES: Overrides = { moreModels: [], provider: NO_PREFERENCES };

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
  const models = readModels(raw, surface);
  if (refused(models)) return models;
  const provider = isGiven(raw.provider) ? readProvider(raw.provider) : NO_PREFERENCES;
  if (refused(provider)) return provider;
  return { moreModels: models, provider };
}

/** A sort that `provider` names goes before the one at the end of the model's name. */
export const sortedBy = (sort: HostSort | null, overrides: Overrides): Overrides =>
  sort === null || overrides.provider.sort !== null
    ? overrides
    : { ...overrides, provider: { ...overrides.provider, sort } };

/** Models that a request may name next to the first. */
const MAX_MODELS = 8;
const MAX_FALLBACKS = 3;

function readModels(raw: Raw, surface: string): readonly string[] | Refusal {
  if (!isGiven(raw.fallbacks)) return isGiven(raw.models) ? readNames("models", raw.models, MAX_MODELS) : [];
  if (surface !== "messages") return invalid("fallbacks", "is read only on /v1/messages; use `models` here");
  if (isGiven(raw.models)) return invalid("fallbacks", "cannot be combined with `models`");
  // Anthropic's word for whatever the server has set up, and where nothing is, for the model alone.
  if (raw.fallbacks === "default") return [];
  if (!Array.isArray(raw.fallbacks)) return invalid("fallbacks", "must be an array of {model} objects");
  // Anthropic's form: one object a model. Other members would change the request, which no host could be
  // told.
  const plain = raw.fallbacks.every((entry) => isObject(entry) && Object.keys(entry).join() === "model");
  if (!plain) return invalid("fallbacks", "must hold {model} objects without any other member");
  return readNames(
    "fallbacks",
    raw.fallbacks.map(({ model }) => model),
    MAX_FALLBACKS,
  );
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;
