import type { Catalog, CatalogWithLists } from "../catalog/catalog.ts";
import { type Price, RATE_LINES, ratesAt } from "../catalog/price.ts";
import type { NanoPerMillion } from "../units/usd.ts";

/**
 * Finds prices that somebody may have copied from a list per token or per thousand tokens. Such a mistake
 * breaks nothing, but sells below cost or refuses everybody for lack of credit. So it is raised as a
 * question, never refused.
 */
export function priceWarnings({ models }: Pick<Catalog, "models">, known: KnownPrice = unknown): string[] {
  return [...models.values()].flatMap(({ id, routes }) => {
    for (const { host, model, price } of routes) {
      const doubt = price === null ? null : doubtOf(price, known(model));
      if (doubt !== null) return [`${id} at ${host.id} is priced at ${doubt}: is that per million tokens?`];
    }
    return [];
  });
}

/** Finds routes that are sold for less than their host charges: by the models' own prices, and by each price list. */
export function costWarnings(catalog: CatalogWithLists): string[] {
  return [catalog, ...catalog.priceLists.values()].flatMap(({ models, priceList }) =>
    [...models.values()].flatMap(({ id, routes }) =>
      routes.flatMap(({ host, price, cost }) => {
        const lines = price === null || cost === undefined ? [] : linesBelow(price, cost);
        if (lines.length === 0) return [];
        const by = priceList === null ? "" : ` by the price list ${priceList}`;
        return [`${id} at ${host.id} is sold${by} for less than its cost: ${lines.join(", ")}`];
      }),
    ),
  );
}

/** At any length of prompt. */
function linesBelow(price: Price, cost: Price): string[] {
  const prompts = [0, ...[price, cost].flatMap(({ above = [] }) => above.map(({ prompt }) => prompt + 1))];
  const rates = prompts.map((prompt) => [ratesAt(price, prompt), ratesAt(cost, prompt)] as const);
  return COMPARED.flatMap((name) => {
    const line = RATE_LINES[name];
    const below = rates.find(([sold, paid]) => line(sold) < line(paid));
    return below === undefined ? [] : [`${name} ${usd(line(below[0]))} of ${usd(line(below[1]))} USD`];
  });
}

const COMPARED = ["input", "output", "cache_read", "cache_write"] as const;

/** What a model costs according to a catalogue, by its name at a host. */
export type KnownPrice = (model: string) => Price | null;

const unknown: KnownPrice = () => null;

function doubtOf(price: Price, known: Price | null): string | null {
  for (const line of ["input", "output"] as const) {
    const [charged, usual] = [price[line], known?.[line] ?? 0];
    if (charged === 0) continue;
    if (usual > 0 && (charged * FAR < usual || charged > usual * FAR)) {
      return `${usd(charged)} USD (${line}), while its known price is ${usd(usual)}`;
    }
    if (charged < LEAST || charged > MOST) return `${usd(charged)} USD (${line})`;
  }
  return null;
}

/** Resellers differ by less than this; mistakes of a thousand or a million by more. */
const FAR = 100;
/** USD per million, times 1e9: hosts charge between 0.005 and 600. */
const LEAST = 0.001e9;
const MOST = 2_000e9;

const usd = (price: NanoPerMillion | number): string => (price / 1e9).toFixed(9).replace(/\.?0+$/, "");
