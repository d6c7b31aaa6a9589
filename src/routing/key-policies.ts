import type { Catalog, Model, Route } from "../catalog/catalog.ts";
import { NOT_SOON, type Refusal, refuse } from "../units/errors/refusal.ts";
import type { KeyPolicy } from "../units/key-policy.ts";
import { pricePerMillion } from "../units/usd.ts";

/** Whether the policy lets its key's requests go this way. */
export const permits = (policy: KeyPolicy | null | undefined, route: Route, price: RouteRates): boolean =>
  !policy || RULES.every(({ keeps }) => keeps(policy, route, price));

/** The models with the routes that the policy leaves, without those of which it leaves none. */
export function permittedModels(policy: KeyPolicy, models: Catalog["models"]): Map<string, Model> {
  const permitted = new Map<string, Model>();
  for (const [id, model] of models) {
    const routes = model.routes.filter((route) => {
      const price = route.free ? NO_PRICE : route.price;
      return price !== null && permits(policy, route, price);
    });
    if (routes.length > 0) permitted.set(id, { ...model, routes });
  }
  return permitted;
}

/** For a free route. */
export const NO_PRICE: RouteRates = { input: 0, output: 0 };

/** Why no route of a model is left; each rule is held against what those before it left. */
function brokenRule(policy: KeyPolicy, { routes }: Model): string {
  let left = routes;
  for (const { name, keeps } of RULES) {
    left = left.filter((route) => !route.free && route.price !== null && keeps(policy, route, route.price));
    if (left.length === 0) return `policy.${name}`;
  }
  return "policy";
}

export function notPermitted(policy: KeyPolicy, model: Model): Refusal {
  const rule = brokenRule(policy, model);
  return refuse(
    "invalid_request",
    `This key's \`${rule}\` leaves no host that serves ${model.id}. Name another model, or have the owner of the balance change the \`policy\` of the key.`,
    { param: rule, ...NOT_SOON },
  );
}

/** In nano-dollars per million tokens. */
interface RouteRates {
  readonly input: number;
  readonly output: number;
}

interface PolicyRule {
  /** As the API spells it. */
  readonly name: string;
  keeps(policy: KeyPolicy, route: Route, price: RouteRates): boolean;
}

/** What the operator does not say of a host does not satisfy a policy. */
const RULES: readonly PolicyRule[] = [
  {
    name: "region",
    keeps: ({ region }, { host }) =>
      region === undefined || (host.region !== undefined && has(region, host.region)),
  },
  { name: "zdr", keeps: ({ zdr }, { host }) => zdr !== true || host.privacy?.retainsNothing === true },
  {
    name: "hosts.only",
    keeps: ({ hosts }, { host }) => hosts?.only === undefined || has(hosts.only, host.id),
  },
  { name: "hosts.ignore", keeps: ({ hosts }, { host }) => !has(hosts?.ignore ?? [], host.id) },
  {
    name: "max_price",
    keeps: ({ max_price: most }, _, { input, output }) =>
      isWithin(input, most?.prompt) && isWithin(output, most?.completion),
  },
];

const has = (names: readonly string[], one: string): boolean =>
  names.some((name) => name.toLowerCase() === one.toLowerCase());

const isWithin = (price: number, most: number | undefined): boolean =>
  most === undefined || price <= pricePerMillion(most)!;
