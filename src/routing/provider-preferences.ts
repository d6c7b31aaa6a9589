import { QUANTIZATIONS, type Quantization } from "../catalog/catalog.ts";
import { invalid, type Refusal, refused } from "../units/errors/refusal.ts";
import { type NanoPerMillion, pricePerMillion } from "../units/usd.ts";
import type { RouteFilter } from "./route-filter.ts";

/**
 * The `provider` object of a request, with OpenRouter's meaning; a provider is a host of this gateway, named
 * by its id. https://openrouter.ai/docs/guides/routing/provider-selection. A member that cannot be understood
 * is refused, never ignored; null is as good as absent, and so is an empty list.
 */
export interface ProviderPreferences extends Required<Omit<RouteFilter, "region">> {
  readonly ignore: readonly string[];
  readonly sort: HostSort | null;
  /** Routes that miss these come later; they are not left out. */
  readonly minThroughput: readonly Cutoff[];
  readonly maxLatency: readonly Cutoff[];
}

export interface HostSort {
  readonly by: "price" | "throughput" | "latency";
  /** Sorts all hosts of all named models together instead of each model's own. */
  readonly acrossModels: boolean;
}

/** A bound on a percentile: `share` 0.9 is `p90`. Throughput in tokens a second, latency in milliseconds. */
interface Cutoff {
  readonly share: number;
  readonly bound: number;
}

export const NO_PREFERENCES: ProviderPreferences = {
  order: [],
  only: null,
  ignore: [],
  allowFallbacks: true,
  requireParameters: false,
  dataCollection: "allow",
  zdr: false,
  quantizations: null,
  sort: null,
  minThroughput: [],
  maxLatency: [],
  maxPrice: { prompt: null, completion: null },
};

export function readProvider(value: unknown): ProviderPreferences | Refusal {
  if (!isObject(value)) return invalid("provider", "must be an object");
  const preferences = { ...NO_PREFERENCES };
  for (const [name, preference] of Object.entries(value)) {
    if (!Object.hasOwn(READERS, name)) {
      return invalid(`provider.${shown(name)}`, `is unknown; known are: ${Object.keys(READERS).join(", ")}`);
    }
    if (preference === null) continue;
    const [member, reader] = READERS[name as keyof typeof READERS];
    const read = reader(`provider.${name}`, preference);
    if (refused(read)) return read;
    Object.assign(preferences, { [member]: read });
  }
  return preferences;
}

const MAX_HOSTS = 64;
/** Characters of a name that the client made up, as a message repeats them. */
const SHOWN_CHARACTERS = 64;

/** By the name of each preference: its member above, and its reader. */
const READERS = {
  order: ["order", readHosts],
  only: ["only", (path, value) => into(readHosts(path, value), orNone)],
  ignore: ["ignore", readHosts],
  allow_fallbacks: ["allowFallbacks", readFlag],
  require_parameters: ["requireParameters", readFlag],
  data_collection: ["dataCollection", (path, value) => readOneOf(path, value, ["allow", "deny"])],
  zdr: ["zdr", readFlag],
  quantizations: ["quantizations", readQuantizations],
  sort: ["sort", readSort],
  preferred_min_throughput: ["minThroughput", (path, value) => readCutoffs(path, value, 1)],
  // OpenRouter gives latency in seconds.
  preferred_max_latency: ["maxLatency", (path, value) => readCutoffs(path, value, 1_000)],
  max_price: ["maxPrice", readMaxPrice],
} satisfies Record<string, PreferenceReader>;

type PreferenceReader = {
  [Name in keyof ProviderPreferences]: [
    member: Name,
    read: (path: string, value: unknown) => ProviderPreferences[Name] | Refusal,
  ];
}[keyof ProviderPreferences];

const into = <T, R>(read: T | Refusal, use: (value: T) => R): R | Refusal =>
  refused(read) ? read : use(read);

const orNone = <T>(list: readonly T[]): readonly T[] | null => (list.length === 0 ? null : list);

function readHosts(path: string, value: unknown): readonly string[] | Refusal {
  return into(readNames(path, value, MAX_HOSTS), (names) => names.map((name) => name.toLowerCase()));
}

function readFlag(path: string, value: unknown): boolean | Refusal {
  return typeof value === "boolean" ? value : invalid(path, "must be true or false");
}

function readOneOf<const T extends string>(path: string, value: unknown, known: readonly T[]): T | Refusal {
  return known.includes(value as T)
    ? (value as T)
    : invalid(path, `must be one of ${known.map((one) => `"${one}"`).join(", ")}`);
}

function readQuantizations(path: string, value: unknown): readonly Quantization[] | null | Refusal {
  const names = readNames(path, value, QUANTIZATIONS.length);
  if (refused(names)) return names;
  const unknown = names.find((name) => !QUANTIZATIONS.includes(name as Quantization));
  return unknown === undefined
    ? orNone(names as Quantization[])
    : invalid(path, `holds "${shown(unknown)}", which is not one of ${QUANTIZATIONS.join(", ")}`);
}

const SORTS = ["price", "throughput", "latency"] as const;

function readSort(path: string, value: unknown): HostSort | Refusal {
  if (!isObject(value)) {
    return into(readOneOf(path, value, SORTS), (by) => ({ by, acrossModels: false }));
  }
  const stranger = Object.keys(value).find((name) => name !== "by" && name !== "partition");
  if (stranger !== undefined)
    return invalid(`${path}.${shown(stranger)}`, "is unknown; known are: by, partition");
  const by = readOneOf(`${path}.by`, value.by, SORTS);
  if (refused(by)) return by;
  const partition = readOneOf(`${path}.partition`, value.partition ?? "model", ["model", "none"]);
  return into(partition, (kind) => ({ by, acrossModels: kind === "none" }));
}

const SHARES = { p50: 0.5, p75: 0.75, p90: 0.9, p99: 0.99 } as const;

/** A number bounds the median. */
function readCutoffs(path: string, value: unknown, unit: number): readonly Cutoff[] | Refusal {
  const bounds = typeof value === "number" ? { p50: value } : value;
  if (!isObject(bounds))
    return invalid(path, "must be a number, or an object {p50, p75, p90, p99} of numbers");
  const cutoffs: Cutoff[] = [];
  for (const [name, bound] of Object.entries(bounds)) {
    if (!Object.hasOwn(SHARES, name))
      return invalid(`${path}.${shown(name)}`, "is unknown; known are: p50, p75, p90, p99");
    if (bound === null) continue;
    if (typeof bound !== "number" || !(bound > 0) || !Number.isFinite(bound)) {
      return invalid(path, "must be a number above 0");
    }
    cutoffs.push({ share: SHARES[name as keyof typeof SHARES], bound: bound * unit });
  }
  return cutoffs;
}

function readMaxPrice(path: string, value: unknown): ProviderPreferences["maxPrice"] | Refusal {
  if (!isObject(value))
    return invalid(path, "must be an object {prompt, completion} in USD per million tokens");
  const bounds: { prompt: NanoPerMillion | null; completion: NanoPerMillion | null } = {
    prompt: null,
    completion: null,
  };
  for (const [name, usd] of Object.entries(value)) {
    if (name !== "prompt" && name !== "completion") {
      return invalid(`${path}.${shown(name)}`, "is unknown; known are: prompt, completion");
    }
    if (usd === null) continue;
    const price = pricePerMillion(
      typeof usd === "string" && usd.trim() !== "" ? Number(usd) : (usd as number),
    );
    if (price === null)
      return invalid(`${path}.${name}`, "must be an amount in USD per million tokens, 0 or more");
    bounds[name] = price;
  }
  return bounds;
}

export function readNames(path: string, value: unknown, most: number): readonly string[] | Refusal {
  const fine =
    Array.isArray(value) &&
    value.length <= most &&
    value.every((name) => typeof name === "string" && name !== "");
  return fine ? (value as string[]) : invalid(path, `must be an array of up to ${most} names`);
}

const shown = (name: string): string => name.slice(0, SHOWN_CHARACTERS);

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
