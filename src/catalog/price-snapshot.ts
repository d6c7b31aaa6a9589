import { NANO_PER_USD, type NanoPerMillion } from "../units/usd.ts";
import type { Catalog, CatalogWithLists } from "./catalog.ts";
import { type ByRetention, type CacheRetention, type Price, type Rates, RETENTIONS } from "./price.ts";

/** What is sold at which price, as it is kept to be compared with a later configuration's. */
export interface PriceSnapshot {
  /** Changes with any price of any list. */
  readonly version: string;
  /** As `GET /v1/catalog` shows it. */
  readonly priceVersion: string;
  readonly routes: readonly PricedRoute[];
  /** By the name of each price list, the version of its prices. */
  readonly lists: Readonly<Record<string, string>>;
}

interface PricedRoute {
  readonly model: string;
  readonly host: string;
  /** The model's name there. */
  readonly name: string;
  /** In USD per million tokens. */
  readonly price: PriceEntry;
}

/** A price that is new, changed or gone. */
export interface ChangedPrice {
  readonly model: string;
  readonly host: string;
  /** Null where it was not sold before. */
  readonly before: PriceEntry | null;
  /** Null where it is not sold any more. */
  readonly after: PriceEntry | null;
}

export function priceSnapshot(catalog: CatalogWithLists): PriceSnapshot {
  const lists = Object.fromEntries(
    [...catalog.priceLists].map(([name, { priceVersion }]) => [name, priceVersion]),
  );
  const { priceVersion } = catalog;
  const version = Bun.hash(JSON.stringify([priceVersion, lists])).toString(16);
  return { version, priceVersion, routes: pricedRoutes(catalog), lists };
}

const pricedRoutes = ({ models }: Catalog): PricedRoute[] =>
  [...models.values()].flatMap(({ id, routes }) =>
    routes.flatMap(({ host, model, price, free }) =>
      free || price === null ? [] : [{ model: id, host: host.id, name: model, price: priceEntry(price) }],
    ),
  );

export function priceChanges(before: PriceSnapshot, after: PriceSnapshot): ChangedPrice[] {
  const left = new Map(before.routes.map((route) => [nameOf(route), route]));
  const changes = after.routes.flatMap((route) => {
    const old = left.get(nameOf(route)) ?? null;
    left.delete(nameOf(route));
    return old !== null && JSON.stringify(old.price) === JSON.stringify(route.price)
      ? []
      : [changeOf(route, old?.price ?? null, route.price)];
  });
  return [...changes, ...[...left.values()].map((route) => changeOf(route, route.price, null))];
}

const nameOf = ({ model, host, name }: PricedRoute): string => `${model}\n${host}\n${name}`;

const changeOf = (
  { model, host }: PricedRoute,
  before: PriceEntry | null,
  after: PriceEntry | null,
): ChangedPrice => ({ model, host, before, after });

/** Price lists that are new, changed or gone. */
export const changedLists = ({ lists: before }: PriceSnapshot, { lists: after }: PriceSnapshot): string[] =>
  Object.keys({ ...before, ...after }).filter((name) => before[name] !== after[name]);

/** USD per million tokens. */
export interface PriceEntry extends RatesEntry {
  /** Rates of a whole request whose prompt has more than `prompt` tokens. */
  readonly above?: readonly StepEntry[];
}

interface StepEntry extends RatesEntry {
  readonly prompt: number;
}

interface RatesEntry extends WritesEntry {
  readonly input: number;
  /** Where sound has a price of its own. */
  readonly audio_input?: number;
  readonly output: number;
  readonly audio_output?: number;
  readonly cache_read: number;
  readonly cache_write: number;
}

/** For what is cached for so long. */
type WritesEntry = { readonly [Retention in CacheRetention as `cache_write_${Retention}`]?: number };

/** In USD per million tokens, as answers have it. */
export const priceEntry = (price: Price): PriceEntry => ({
  ...ratesEntry(price),
  ...(price.above === undefined
    ? {}
    : { above: price.above.map((step) => ({ prompt: step.prompt, ...ratesEntry(step) })) }),
});

const ratesEntry = (rates: Omit<Rates, "above">): RatesEntry => ({
  input: usdPerMillion(rates.input),
  ...(rates.audioInput === undefined ? {} : { audio_input: usdPerMillion(rates.audioInput) }),
  output: usdPerMillion(rates.output),
  ...(rates.audioOutput === undefined ? {} : { audio_output: usdPerMillion(rates.audioOutput) }),
  cache_read: usdPerMillion(rates.cacheRead),
  cache_write: usdPerMillion(rates.cacheWrite),
  ...writesEntry(rates.cacheWrites ?? { "1h": rates.cacheWrite }),
});

/** `cache_write_12h` and the like. */
const writesEntry = (writes: ByRetention<NanoPerMillion>): WritesEntry =>
  Object.fromEntries(
    RETENTIONS.flatMap((one) =>
      writes[one] === undefined ? [] : [[`cache_write_${one}`, usdPerMillion(writes[one])]],
    ),
  );

const usdPerMillion = (price: NanoPerMillion): number => price / NANO_PER_USD;
