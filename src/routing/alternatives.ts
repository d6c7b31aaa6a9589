import type { Catalog } from "../catalog/catalog.ts";
import { allows } from "./naming.ts";
import { paidStops, type Roads, type Wish } from "./stop.ts";

/** Models that a request could be sent to instead: allowed, priced, and on a host that works. */
export function workingAlternatives(
  except: string,
  catalog: Catalog,
  roads: Roads,
  wish: Pick<Wish, "surface" | "allowedModels">,
): string[] {
  const ids: string[] = [];
  for (const model of catalog.models.values()) {
    if (ids.length === MAX_ALTERNATIVES) break;
    if (model.id === except || !allows(wish, model.id)) continue;
    if (paidStops(model, wish, roads).some(({ route }) => roads.restMs(route) === 0)) ids.push(model.id);
  }
  return ids;
}

/** How many alternatives a message names. */
const MAX_ALTERNATIVES = 3;

export const alternativesSentence = (ids: readonly string[]): string =>
  ids.length === 0
    ? "No other model of the catalog works right now."
    : `Working alternatives: ${ids.join(", ")}.`;
