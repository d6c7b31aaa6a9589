import type { AnswerTo } from "../api/about.ts";
import type { CATALOG } from "../api/catalog.ts";
import { isFree, type RouteAvailability, servingRoutes, soldAt } from "../catalog/availability.ts";
import { type Catalog, type Modality, type Model, SURFACE_NAMES } from "../catalog/catalog.ts";
import { priceEntry } from "../catalog/price-snapshot.ts";

/** One row of `GET /v1/catalog` (contract §4). */
export type CatalogEntry = AnswerTo<typeof CATALOG.catalog>["data"][number];

/** In the order of the configuration. */
export const catalogEntries = ({ models }: Catalog, routeState: RouteAvailability): CatalogEntry[] =>
  [...models.values()].map((model) => catalogEntry(model, routeState));

/** What of the entries changes while the catalog stays: two that are equal have the same entries. */
export function availabilityOf({ models }: Catalog, routeState: RouteAvailability): Buffer {
  const states: number[] = [];
  for (const { routes } of models.values())
    for (const route of routes)
      states.push(
        (route.free && routeState.verifiedFree(route) ? 2 : 0) + (routeState.usable(route) ? 1 : 0),
      );
  return Buffer.from(states);
}

export function catalogEntry(model: Model, routeState: RouteAvailability): CatalogEntry {
  const price = soldAt(model);
  return {
    id: model.id,
    name: model.name,
    context_length: model.contextLength,
    max_output_tokens: model.maxOutputTokens,
    price: price === null ? null : priceEntry(price),
    input_modalities: model.abilities?.inputs ?? TEXT,
    supported_parameters: parametersOf(model),
    surfaces: model.routes.length === 0 ? [] : SURFACE_NAMES,
    free: isFree(model, routeState),
    available: servingRoutes(model, routeState).length > 0,
  };
}

const TEXT: readonly Modality[] = ["text"];

/** As the operator listed them for the routes; else by what is known of the model. */
function parametersOf({ abilities, routes }: Model): string[] {
  const listed = routes.flatMap(({ parameters }) => [...(parameters ?? [])]);
  if (listed.length > 0) return [...new Set(listed)];
  if (abilities === undefined) return [];
  const quirks = routes.map((route) => route.quirks ?? route.host.quirks);
  const all = (quirk: "noSampling" | "noReasoningEffort") => quirks.every((one) => one[quirk] === true);
  return [
    "max_tokens",
    "stop",
    ...(all("noSampling") ? [] : ["temperature", "top_p"]),
    ...(abilities.tools ? ["tools", "tool_choice"] : []),
    ...(abilities.reasoning ? ["reasoning", "include_reasoning"] : []),
    ...(abilities.reasoning && !all("noReasoningEffort") ? ["reasoning_effort"] : []),
  ];
}
