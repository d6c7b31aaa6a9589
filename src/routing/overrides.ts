import { type Refusal, refuse, refused } from "../errors/refusal.ts";
import { type NanoPerMillion, pricePerMillion } from "../units/usd.ts";

/**
 * A client's wishes about routing, with OpenRouter's meaning: `models` and `fallbacks` are tried in order after `model`;
 * `provider` filters and orders the hosts. A wish that cannot be understood is refused, never ignored.
 */
export interface Overrides {
  /** Models after the first, in order. */
  readonly moreModels: readonly string[];
  readonly provider: ProviderWishes;
}

export interface ProviderWishes {
  readonly order: readonly string[];
  readonly only: readonly string[] | null;
  readonly ignore: readonly string[];
  readonly allowFallbacks: boolean;
  readonly sort: "price" | null;
  readonly maxPrice: { readonly prompt: NanoPerMillion | null; readonly completion: NanoPerMillion | null };
}

export const NO_OVERRIDES: Overrides = {
  moreModels: [],
  provider: {
    order: [],
    only: null,
    ignore: [],
    allowFallbacks: true,
    sort: null,
    maxPrice: { prompt: null, completion: null },
  },
};

type Raw = Readonly<{ models?: unknown; provider?: unknown; route?: unknown; fallbacks?: unknown }>;

export const namesOverrides = (raw: Raw): string | null =>
  (["models", "provider", "route", "fallbacks"] as const).find((name) => raw[name] !== undefined) ?? null;

export function readOverrides(raw: Raw, surface: string): Overrides | Refusal {
  if (namesOverrides(raw) === null) return NO_OVERRIDES;
  if (raw.route !== undefined && raw.route !== "fallback") {
    return invalid("route", 'must be "fallback" where it is given');
  }
  const models = readModels(raw, surface);
  if (refused(models)) return models;
  const provider = raw.provider === undefined ? NO_OVERRIDES.provider : readProvider(raw.provider);
  if (refused(provider)) return provider;
  return { moreModels: models, provider };
}

/** Fallback models a request may name. */
const MAX_MODELS = 8;
const MAX_FALLBACKS = 3;
const MAX_HOSTS = 64;

function readModels(raw: Raw, surface: string): readonly string[] | Refusal {
  if (raw.fallbacks === undefined)
    return raw.models === undefined ? [] : readNames("models", raw.models, MAX_MODELS);
  if (surface !== "messages") return invalid("fallbacks", "is read on /v1/messages only; use models here");
  if (raw.models !== undefined) return invalid("fallbacks", "cannot be combined with models");
  if (!Array.isArray(raw.fallbacks)) return invalid("fallbacks", "must be an array of models");
  const names = raw.fallbacks.map((entry) => (isObject(entry) ? entry.model : entry));
  return readNames("fallbacks", names, MAX_FALLBACKS);
}

function readProvider(value: unknown): ProviderWishes | Refusal {
  if (!isObject(value)) return invalid("provider", "must be an object");
  const wishes: { -readonly [K in keyof ProviderWishes]: ProviderWishes[K] } = { ...NO_OVERRIDES.provider };
  for (const [name, wish] of Object.entries(value)) {
    const path = `provider.${name}`;
    switch (name) {
      case "order":
      case "only":
      case "ignore": {
        const hosts = readNames(path, wish, MAX_HOSTS);
        if (refused(hosts)) return hosts;
        wishes[name] = hosts;
        break;
      }
      case "allow_fallbacks":
        if (typeof wish !== "boolean") return invalid(path, "must be true or false");
        wishes.allowFallbacks = wish;
        break;
      case "sort":
        if (wish !== "price") return invalid(path, 'must be "price"');
        wishes.sort = wish;
        break;
      case "max_price": {
        const maxPrice = readMaxPrice(wish);
        if (refused(maxPrice)) return maxPrice;
        wishes.maxPrice = maxPrice;
        break;
      }
      default:
        return invalid(
          path,
          "is not a routing wish that this gateway serves: order, only, ignore, allow_fallbacks, sort, max_price",
        );
    }
  }
  return wishes;
}

function readMaxPrice(value: unknown): ProviderWishes["maxPrice"] | Refusal {
  if (!isObject(value))
    return invalid("provider.max_price", "must be an object {prompt, completion} in USD per million tokens");
  const bounds: { prompt: NanoPerMillion | null; completion: NanoPerMillion | null } = {
    prompt: null,
    completion: null,
  };
  for (const [name, usd] of Object.entries(value)) {
    if (name !== "prompt" && name !== "completion")
      return invalid(`provider.max_price.${name}`, "is not known: prompt, completion");
    const price = pricePerMillion(typeof usd === "string" ? Number(usd) : (usd as number));
    if (price === null)
      return invalid(`provider.max_price.${name}`, "must be USD per million tokens, 0 or more");
    bounds[name] = price;
  }
  return bounds;
}

function readNames(path: string, value: unknown, most: number): readonly string[] | Refusal {
  const fine =
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= most &&
    value.every((name) => typeof name === "string" && name !== "");
  return fine ? (value as string[]) : invalid(path, `must be an array of 1 to ${most} names`);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const invalid = (param: string, what: string): Refusal =>
  refuse("invalid_request", `\`${param}\` ${what}.`, { param });
