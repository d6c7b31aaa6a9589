import type { NanoPerMillion } from "../units/usd.ts";
import { type Price, type Rates, RETENTIONS } from "./price.ts";

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
  const rates = scaledRates(base, factorMillionths);
  if (above === undefined) return rates;
  return {
    ...rates,
    above: above.map((step) => ({ ...scaledRates(step, factorMillionths), prompt: step.prompt })),
  };
}

function scaledRates(rates: Rates, factorMillionths: number): Rates {
  const { cacheWrites, audioInput, audioOutput } = rates;
  const times = (price: NanoPerMillion): NanoPerMillion =>
    Number((BigInt(price) * BigInt(factorMillionths) + 999_999n) / 1_000_000n) as NanoPerMillion;
  return {
    input: times(rates.input),
    output: times(rates.output),
    cacheRead: times(rates.cacheRead),
    cacheWrite: times(rates.cacheWrite),
    ...(cacheWrites === undefined
      ? {}
      : {
          cacheWrites: Object.fromEntries(
            RETENTIONS.flatMap((one) =>
              cacheWrites[one] === undefined ? [] : [[one, times(cacheWrites[one])]],
            ),
          ),
        }),
    ...(audioInput === undefined ? {} : { audioInput: times(audioInput) }),
    ...(audioOutput === undefined ? {} : { audioOutput: times(audioOutput) }),
  };
}

/** The most expensive member of the prices of a model. */
export const highestMember = ({ price, routes }: PricedModel): number =>
  Math.max(
    0,
    ...[price, ...routes.map((route) => route.price)].flatMap((one) =>
      one === null ? [] : [one, ...(one.above ?? [])].flatMap(members),
    ),
  );

const members = ({
  input,
  output,
  cacheRead,
  cacheWrite,
  cacheWrites,
  audioInput,
  audioOutput,
}: Price | Rates) => [
  input,
  output,
  cacheRead,
  cacheWrite,
  audioInput ?? 0,
  audioOutput ?? 0,
  ...Object.values(cacheWrites ?? {}),
];
