import { NANO_PER_USD, type NanoPerMillion } from "../units/usd.ts";
import {
  type Catalog,
  type Modality,
  type Model,
  type Route,
  SURFACE_NAMES,
  type SurfaceName,
} from "./catalog.ts";
import { type ByRetention, type Price, type Rates, RETENTIONS } from "./price.ts";

/** One row of `GET /v1/catalog` (contract §4). */
export interface CatalogEntry {
  readonly id: string;
  readonly name: string;
  readonly context_length: number;
  readonly max_output_tokens: number;
  /** USD per million tokens; null when the model cannot be bought. */
  readonly price: PriceEntry | null;
  /** What prompts may hold. */
  readonly input_modalities: readonly Modality[];
  /** Members of a request that are known to be obeyed; empty where nothing is known. */
  readonly supported_parameters: readonly string[];
  /** The endpoints that it can be called on. */
  readonly surfaces: readonly SurfaceName[];
  /** Reachable on the Open Tier right now. */
  readonly free: boolean;
  /** A request for it would be sent to a host right now. */
  readonly available: boolean;
}

export interface PriceEntry extends RatesEntry {
  /** Rates of a whole request whose prompt has more than `prompt` tokens. */
  readonly above?: readonly StepEntry[];
}

interface StepEntry extends RatesEntry {
  readonly prompt: number;
}

interface RatesEntry {
  readonly input: number;
  /** Where sound has a price of its own. */
  readonly audio_input?: number;
  readonly output: number;
  readonly audio_output?: number;
  readonly cache_read: number;
  readonly cache_write: number;
  readonly cache_write_5m?: number;
  readonly cache_write_30m?: number;
  readonly cache_write_1h?: number;
  readonly cache_write_12h?: number;
}

/** Whether routes can serve right now; routing's `RouteState` has this shape. */
export interface RouteAvailability {
  /** It does not rest because it failed. */
  usable(route: Route): boolean;
  /** A free route is verified: it answers, and its host reports no charge. */
  verifiedFree(route: Route): boolean;
}

/** In the order of the configuration. `allowed` null: every model. */
export function catalogEntries(
  catalog: Catalog,
  routeState: RouteAvailability,
  allowed: readonly string[] | null = null,
): CatalogEntry[] {
  const entries: CatalogEntry[] = [];
  for (const model of catalog.models.values()) {
    if (allowed === null || allowed.includes(model.id)) entries.push(catalogEntry(model, routeState));
  }
  return entries;
}

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

/** Null where it is served on the Open Tier alone. */
export const soldAt = ({ price, routes }: Model): Price | null =>
  price ?? routes.find((route) => !route.free && route.price !== null)?.price ?? null;

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

/** Served on the Open Tier right now. */
export const isFree = ({ routes }: Model, routeState: Pick<RouteAvailability, "verifiedFree">): boolean =>
  routes.some((route) => route.free && routeState.verifiedFree(route));

/** To which a request would be sent right now. */
export const servingRoutes = ({ routes }: Model, routeState: RouteAvailability): Route[] =>
  routes.filter(
    (route) =>
      (route.free ? routeState.verifiedFree(route) : route.price !== null) && routeState.usable(route),
  );

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
const writesEntry = (writes: ByRetention<NanoPerMillion>): Readonly<Record<string, number>> =>
  Object.fromEntries(
    RETENTIONS.flatMap((one) =>
      writes[one] === undefined ? [] : [[`cache_write_${one}`, usdPerMillion(writes[one])]],
    ),
  );

const usdPerMillion = (price: NanoPerMillion): number => price / NANO_PER_USD;
