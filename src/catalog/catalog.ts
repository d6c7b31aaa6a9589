import type { Price } from "./price.ts";
import { modelsAt, type PriceList, withoutPrices } from "./price-list.ts";
import type { Quirks } from "./quirks.ts";
import { ShortNames } from "./short-names.ts";

/** The three wire languages, spoken by clients to the gateway and by the gateway to hosts. */
export type SurfaceName = "chat.completions" | "responses" | "messages";

export const SURFACE_NAMES = ["chat.completions", "responses", "messages"] as const satisfies SurfaceName[];

/** An upstream host: a row of data. No code names a provider; what is peculiar to one is in `quirks`. */
export interface Host {
  readonly id: string;
  /** Without a trailing slash; the surface's path is appended: `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  readonly speaks: readonly SurfaceName[];
  /** Null where it takes none, or has several. */
  readonly apiKey: string | null;
  /** Several keys, with limits of their own; absent: the one above. */
  readonly keys?: readonly HostKey[];
  readonly auth: "bearer" | "x-api-key";
  /** Sent with every request, lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * What to do with a call whose client leaves, depending on how the host bills it: stop it, or read it to
   * its end.
   */
  readonly onDisconnect: "cancel" | "drain";
  /** What the host charges for a call that is cancelled before its first token; absent: nothing. */
  readonly billsCancelled?: "prompt";
  /** The host charges nothing for an answer that it declined to give; absent: what its usage comes to. */
  readonly refusals?: "free";
  /** On Messages, it goes on by itself with another of its models where one declines; absent: the gateway does. */
  readonly fallbacks?: "native";
  readonly quirks: Quirks;
  /** The most requests that it is given at once; absent: the default in limits/host-slots. */
  readonly maxConcurrent?: number;
  /** How long it keeps what it has cached of a prompt; absent: the default in routing/cache-lifetime. */
  readonly cacheMs?: number;
  /** On Messages, the gateway marks what to cache in requests without marks. */
  readonly autoCache?: boolean;
  /** Gets no requests for now: models have no routes to it. */
  readonly paused?: boolean;
  /** Where it runs, as the operator calls it; absent: not known. */
  readonly region?: string;
  /** What the operator knows about the host's handling of prompts; absent: nothing. */
  readonly privacy?: Privacy;
}

/** One of several keys of a host. */
export interface HostKey {
  /** The variable or file that holds it: unique within the host, and no secret. */
  readonly name: string;
  readonly from: "env" | "file";
  /** Its text, which a rotated file replaces; hosts may still repeat the previous one. */
  readonly secret: { text: string; previous?: string };
  /** Its share of new conversations is its weight among all weights. */
  readonly weight: number;
  readonly maxConcurrent?: number;
  /** Requests, and tokens, in any minute. */
  readonly rpm?: number;
  readonly tpm?: number;
}

/** The texts of all keys of a host. */
export const keyTextsOf = ({ apiKey, keys = [] }: Pick<Host, "apiKey" | "keys">): string[] => [
  ...(apiKey === null ? [] : [apiKey]),
  ...keys.flatMap(({ secret: { text, previous } }) => (previous === undefined ? [text] : [text, previous])),
];

/** Each is true only if the operator says so. */
interface Privacy {
  /** The host neither keeps prompts for itself nor trains on them. */
  readonly collectsNothing: boolean;
  /** Zero data retention: nothing of a request is kept at all. */
  readonly retainsNothing: boolean;
}

/** One way to reach a model: a host, and the model's name there. */
export interface Route {
  readonly host: Host;
  readonly model: string;
  /**
   * The route's own price, or the model's. Null when neither is known; then the route never serves paid
   * requests.
   */
  readonly price: Price | null;
  /** What the host charges the operator, who alone sees it; absent: not known, unless the host says it with its answers. */
  readonly cost?: Price;
  /** Used by the Open Tier only, and only while verified. */
  readonly free: boolean;
  /** The host's quirks, changed by what is peculiar to this model; absent: the host's. */
  readonly quirks?: Quirks;
  /** Absent: the host's. */
  readonly cacheMs?: number;
  readonly autoCache?: boolean;
  /** Absent: `unknown`. */
  readonly quantization?: Quantization;
  /** The request members that the host supports for this model; absent: all of its language. */
  readonly parameters?: ReadonlySet<string>;
}

/** The same for all models that one model of a host serves. */
export const routeName = ({ host, model }: Route): string => `${host.id}\n${model}`;

/** Quantization of a model's weights at a host; OpenRouter's names. */
export const QUANTIZATIONS = [
  "int4",
  "int8",
  "fp4",
  "fp6",
  "fp8",
  "fp16",
  "bf16",
  "fp32",
  "unknown",
] as const;
export type Quantization = (typeof QUANTIZATIONS)[number];

/**
 * In which order a model's hosts are tried. `listed`: as the operator listed them. `price`: cheapest first, except that
 * each host gets a share of the requests. `latency`, `throughput`: the fastest first, as measured.
 */
export const HOST_ORDERS = ["listed", "price", "latency", "throughput"] as const;
export type HostOrder = (typeof HOST_ORDERS)[number];

/** What prompts may hold; OpenRouter's names. */
export const MODALITIES = ["text", "image", "file", "audio"] as const;
export type Modality = (typeof MODALITIES)[number];

/** What a model is known to be able to do: shown to clients, which choose by it. No request is refused for it. */
export interface Abilities {
  readonly inputs: readonly Modality[];
  readonly tools: boolean;
  readonly reasoning: boolean;
}

export interface Model {
  /** `<author>/<name>` */
  readonly id: string;
  readonly name: string;
  /** Other names that clients may ask for it by; absent: none. */
  readonly aliases?: readonly string[];
  /** Ids of models that serve in its place when it declines, in order; absent: none. */
  readonly fallbacks?: readonly string[];
  readonly contextLength: number;
  readonly maxOutputTokens: number;
  /** Absent: nothing is known. */
  readonly abilities?: Abilities;
  readonly price: Price | null;
  /** Absent: as all models. */
  readonly order?: HostOrder;
  /** In order of preference; empty while all of its hosts are paused. */
  readonly routes: readonly Route[];
}

/** What the gateway serves. Immutable: a reload builds another one. */
export interface Catalog {
  readonly models: ReadonlyMap<string, Model>;
  /** Variant → ordered model ids, for `gateway/auto:<variant>`. */
  readonly auto: ReadonlyMap<string, readonly string[]>;
  readonly hosts: ReadonlyMap<string, Host>;
  /** Names the prices of all models, the same in every process that sells at them. */
  readonly priceVersion: string;
  /** The price list that the prices are of; null: the models' own. */
  readonly priceList: string | null;
  /** Nothing has a price, because the configuration lacks the customer's list. */
  readonly lacksList?: true;
  /** What names that are no ids may stand for. */
  readonly shortNames: ShortNames;
}

/** The same models at the prices of each list, so that no request has to compute one. */
export interface CatalogWithLists extends Catalog {
  readonly priceLists: ReadonlyMap<string, Catalog>;
  /** For customers whose list the configuration no longer has: nothing is sold at a price that nobody decided. */
  readonly unpriced: Catalog;
}

export function catalogOf(
  rows: Pick<Catalog, "models" | "auto" | "hosts">,
  lists: Iterable<PriceList> = [],
): CatalogWithLists {
  const { models, auto } = rows;
  const shared = { ...rows, shortNames: new ShortNames(models.values(), auto.keys()) };
  const pricedBy = (priceList: string | null, priced: ReadonlyMap<string, Model>): Catalog => ({
    ...shared,
    models: priced,
    priceVersion: versionOf(priced.values()),
    priceList,
  });
  return {
    ...pricedBy(null, models),
    priceLists: new Map([...lists].map((list) => [list.name, pricedBy(list.name, modelsAt(list, models))])),
    unpriced: { ...pricedBy(null, withoutPrices(models)), lacksList: true },
  };
}

/** The catalog as a customer with that price list sees it; null: without one. */
export const catalogAt = (catalog: CatalogWithLists, priceList: string | null): Catalog =>
  priceList === null ? catalog : (catalog.priceLists.get(priceList) ?? catalog.unpriced);

/** Changes with any price. */
function versionOf(models: Iterable<Model>): string {
  const prices = [...models].map(({ id, price, routes }) => [id, price, routes.map((route) => route.price)]);
  return Bun.hash(JSON.stringify(prices)).toString(16).padStart(16, "0");
}
