import type { NanoPerMillion } from "../units/usd.ts";
import { mapRates, type Price, type Rates } from "./price.ts";

/** What some customers pay: the first rule that matches a model prices it; a model without one keeps its own price. */
export interface PriceList {
  readonly name: string;
  readonly rules: readonly PriceRule[];
}

export interface PriceRule {
  /** The id of a model; `*` stands for any characters. */
  readonly model: string;
  readonly change: PriceChange;
}

/** A factor in millionths, applied to every member of a price; or a price for every route of the model. */
type PriceChange = { readonly factorMillionths: number } | { readonly price: Price };

/** A model, as far as its prices go. */
interface PricedModel {
  readonly price: Price | null;
  readonly routes: readonly { readonly price: Price | null; readonly free: boolean }[];
}

/** The models at the prices of a list. */
export function modelsAt<Model extends PricedModel>(
  { rules }: PriceList,
  models: ReadonlyMap<string, Model>,
): ReadonlyMap<string, Model> {
  const matches = rules.map(({ model, change }) => ({ isMatch: matcherOf(model), change }));
  return new Map(
    [...models].map(([id, model]) => {
      const rule = matches.find(({ isMatch }) => isMatch(id));
      return [id, rule === undefined ? model : changed(model, rule.change)];
    }),
  );
}

/** The models where no price is known: none of them can be bought. */
export const withoutPrices = <Model extends PricedModel>(
  models: ReadonlyMap<string, Model>,
): ReadonlyMap<string, Model> =>
  new Map(
    [...models].map(([id, model]) => [
      id,
      { ...model, price: null, routes: model.routes.map((route) => ({ ...route, price: null })) },
    ]),
  );

/** Whether a rule for such models prices this one. */
export function matcherOf(pattern: string): (id: string) => boolean {
  if (!pattern.includes("*")) return (id) => id === pattern;
  const [first, ...others] = pattern.split("*") as [string, ...string[]];
  const last = others.pop()!;
  return (id) => {
    if (id.length < first.length + last.length || !id.startsWith(first) || !id.endsWith(last)) return false;
    let at = first.length;
    for (const part of others) {
      const found = id.indexOf(part, at);
      if (found === -1) return false;
      at = found + part.length;
    }
    return at <= id.length - last.length;
  };
}

function changed<Model extends PricedModel>(model: Model, change: PriceChange): Model {
  const priced = (price: Price | null): Price | null =>
    "price" in change ? change.price : price === null ? null : scaled(price, change.factorMillionths);
  return {
    ...model,
    price: priced(model.price),
    routes: model.routes.map((route) => ({ ...route, price: route.free ? null : priced(route.price) })),
  };
}

/**
 * Each member of the price times the factor, rounded up to the next nano-dollar per million tokens. So no step becomes
 * cheaper than the one before it, and a receipt's cost is its tokens times the rates that it shows.
 */
function scaled({ above, ...base }: Price, factorMillionths: number): Price {
  const times = (rate: NanoPerMillion): NanoPerMillion =>
    Number((BigInt(rate) * BigInt(factorMillionths) + 999_999n) / 1_000_000n) as NanoPerMillion;
  const rates = mapRates(base, times);
  return above === undefined
    ? rates
    : { ...rates, above: above.map((step) => ({ ...mapRates(step, times), prompt: step.prompt })) };
}

/** The most expensive member of the prices of a model. */
export const highestMember = ({ price, routes }: PricedModel): number =>
  Math.max(
    0,
    ...[price, ...routes.map((route) => route.price)].flatMap((one) =>
      one === null ? [] : [one, ...(one.above ?? [])].flatMap(members),
    ),
  );

const members = ({ cacheWrites, ...rates }: Price | Rates): readonly number[] =>
  Object.values({ ...rates, ...cacheWrites, above: 0, prompt: 0 });
