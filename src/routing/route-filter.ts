import type { Catalog, Model, Quantization, Route } from "../catalog/catalog.ts";
import { NOT_SOON, type Refusal, refuse } from "../units/errors/refusal.ts";
import type { KeyPolicy } from "../units/key-policy.ts";
import { type NanoPerMillion, pricePerMillion } from "../units/usd.ts";

/**
 * What a key's `policy` and a request's `provider` demand of a route: both apply. Names are in lower case; null or absent
 * demands nothing. What the operator does not say of a host meets no demand.
 */
export interface RouteFilter {
  readonly region?: readonly string[] | null;
  readonly only?: readonly string[] | null;
  readonly ignore?: readonly string[] | null;
  /** `deny`: only hosts that are known not to collect prompts. */
  readonly dataCollection?: "allow" | "deny";
  /** Only hosts that are known to retain nothing. */
  readonly zdr?: boolean;
  readonly quantizations?: readonly Quantization[] | null;
  /** Only routes that are known to take every parameter of the request. */
  readonly requireParameters?: boolean;
  readonly maxPrice?: { readonly prompt: NanoPerMillion | null; readonly completion: NanoPerMillion | null };
  /** Host ids; these come first, in this order. */
  readonly order?: readonly string[];
  /** False: only the hosts of `order`, or, without one, the first host alone. */
  readonly allowFallbacks?: boolean;
}

/** A route at its price in nano-dollars per million tokens. */
interface RouteAtPrice {
  readonly route: Route;
  readonly price: { readonly input: number; readonly output: number };
}

/** `members`: those of the request's body. */
type Meets = (
  route: Route,
  price: RouteAtPrice["price"],
  filter: RouteFilter,
  members: readonly string[],
) => boolean;

const CONDITIONS = {
  region: ({ host }, _, { region }) =>
    !region || (host.region !== undefined && region.includes(host.region.toLowerCase())),
  only: (route, _, { only }) => !only || only.includes(idOf(route)),
  ignore: (route, _, { ignore }) => !ignore?.includes(idOf(route)),
  dataCollection: ({ host }, _, { dataCollection }) =>
    dataCollection !== "deny" || host.privacy?.collectsNothing === true || retainsNothing(host),
  zdr: ({ host }, _, { zdr }) => zdr !== true || retainsNothing(host),
  quantizations: ({ quantization = "unknown" }, _, { quantizations }) =>
    !quantizations || quantizations.includes(quantization),
  requireParameters: ({ parameters }, _, { requireParameters }, members) =>
    requireParameters !== true ||
    parameters === undefined ||
    members.every((name) => UNIVERSAL.has(name) || parameters.has(name)),
  maxPrice: (_, price, { maxPrice }) =>
    price.input <= (maxPrice?.prompt ?? Infinity) && price.output <= (maxPrice?.completion ?? Infinity),
  order: (route, _, { order = [], allowFallbacks }) =>
    allowFallbacks !== false || order.length === 0 || order.includes(idOf(route)),
} satisfies Record<string, Meets>;

const idOf = ({ host }: Route): string => host.id.toLowerCase();

const retainsNothing = ({ privacy }: Route["host"]): boolean => privacy?.retainsNothing === true;

/** Parameters that every host accepts, or that the gateway itself reads. */
const UNIVERSAL = new Set([
  "model",
  "messages",
  "input",
  "instructions",
  "system",
  "stream",
  "stream_options",
  "max_tokens",
  "max_completion_tokens",
  "max_output_tokens",
  "models",
  "provider",
  "route",
  "fallbacks",
]);

/** Conditions in the order in which they are judged, as the API spells them. */
type Conditions = readonly (readonly [name: string, meets: Meets])[];

const OF_POLICY: Conditions = [
  ["policy.region", CONDITIONS.region],
  ["policy.zdr", CONDITIONS.zdr],
  ["policy.hosts.only", CONDITIONS.only],
  ["policy.hosts.ignore", CONDITIONS.ignore],
  ["policy.max_price", CONDITIONS.maxPrice],
];

const OF_PROVIDER: Conditions = [
  ["provider.only", CONDITIONS.only],
  ["provider.ignore", CONDITIONS.ignore],
  ["provider.data_collection", CONDITIONS.dataCollection],
  ["provider.zdr", CONDITIONS.zdr],
  ["provider.quantizations", CONDITIONS.quantizations],
  ["provider.require_parameters", CONDITIONS.requireParameters],
  ["provider.max_price", CONDITIONS.maxPrice],
  ["provider.order", CONDITIONS.order],
];

/** What is left of the routes, or the name of the condition that leaves none of what those before it left. */
function narrowed<T extends RouteAtPrice>(
  routes: readonly T[],
  conditions: Conditions,
  filter: RouteFilter,
  members: readonly string[],
): readonly T[] | string {
  let left = routes;
  for (const [name, meets] of conditions) {
    left = left.filter(({ route, price }) => meets(route, price, filter, members));
    if (left.length === 0) return name;
  }
  return left;
}

/** The candidates that `provider` leaves of one model's. */
export function providerAllows<T extends RouteAtPrice>(
  candidates: readonly T[],
  provider: RouteFilter,
  members: readonly string[],
  model: Model,
): readonly T[] | Refusal {
  const left = narrowed(candidates, OF_PROVIDER, provider, members);
  if (typeof left !== "string") return left;
  return refuse(
    "invalid_request",
    `\`${left}\` leaves no host that serves ${model.id}. Change or remove it.`,
    { param: left },
  );
}

/** Whether the policy lets its key's requests go this way. */
export function policyAllows(policy: KeyPolicy | null | undefined): PolicyCheck {
  if (!policy) return ALL;
  const filter = filterOf(policy);
  return (route, price) => OF_POLICY.every(([, meets]) => meets(route, price, filter, []));
}

type PolicyCheck = (route: Route, price: RouteAtPrice["price"]) => boolean;

const ALL: PolicyCheck = () => true;

const filterOf = ({ region, zdr = false, hosts, max_price: most }: KeyPolicy): RouteFilter => ({
  region: lower(region),
  zdr,
  only: lower(hosts?.only),
  ignore: lower(hosts?.ignore),
  maxPrice: { prompt: perMillion(most?.prompt), completion: perMillion(most?.completion) },
});

const lower = (names: readonly string[] | undefined): readonly string[] | null =>
  names === undefined ? null : names.map((name) => name.toLowerCase());

const perMillion = (usd: number | undefined): NanoPerMillion | null =>
  usd === undefined ? null : pricePerMillion(usd)!;

/** The models with the routes that the policy leaves, without those of which it leaves none. */
export function permittedModels(policy: KeyPolicy, models: Catalog["models"]): Map<string, Model> {
  const allows = policyAllows(policy);
  const permitted = new Map<string, Model>();
  for (const [id, model] of models) {
    const routes = model.routes.filter((route) => {
      const price = route.free ? NO_PRICE : route.price;
      return price !== null && allows(route, price);
    });
    if (routes.length > 0) permitted.set(id, { ...model, routes });
  }
  return permitted;
}

/** For a free route. */
export const NO_PRICE: RouteAtPrice["price"] = { input: 0, output: 0 };

export function notPermitted(policy: KeyPolicy, model: Model): Refusal {
  const paid = model.routes.flatMap((route) =>
    route.free || route.price === null ? [] : [{ route, price: route.price }],
  );
  const left = narrowed(paid, OF_POLICY, filterOf(policy), []);
  const rule = typeof left === "string" ? left : "policy";
  return refuse(
    "invalid_request",
    `This key's \`${rule}\` leaves no host that serves ${model.id}. Name another model, or have the owner of the balance change the \`policy\` of the key.`,
    { param: rule, ...NOT_SOON },
  );
}
