import type { Catalog, CatalogWithLists } from "./catalog.ts";
import { type PriceEntry, priceEntry } from "./entry.ts";

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
