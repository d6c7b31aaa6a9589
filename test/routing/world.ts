import {
  type Catalog,
  type Host,
  type Model,
  catalogOf as openCatalog,
  type Route,
} from "../../src/catalog/catalog.ts";
import type { Price } from "../../src/catalog/price.ts";
import type { Candidate, RouteQuery, RouteState } from "../../src/routing/candidate.ts";
import type { Observation } from "../../src/routing/health.ts";
import { NO_OVERRIDES } from "../../src/routing/overrides.ts";
import type { Plan } from "../../src/routing/plan.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { pricePerMillion } from "../../src/units/usd.ts";
import { hostRow } from "../fakes/host.ts";

export const priceOf = (input: number, output = input): Price => ({
  input: pricePerMillion(input)!,
  output: pricePerMillion(output)!,
  cacheRead: pricePerMillion(input)!,
  cacheWrite: pricePerMillion(input)!,
});

const host = (id: string, row: Partial<Host> = {}): Host => hostRow({ url: `http://${id}` }, { id, ...row });

export const route = (id: string, more: Partial<Route> & { readonly on?: Partial<Host> } = {}): Route => {
  const { on, ...rest } = more;
  return { host: host(id, on), model: `${id}-name`, price: priceOf(1), free: false, ...rest };
};

export const model = (id: string, routes: readonly Route[], more: Partial<Model> = {}): Model => ({
  id,
  name: id,
  contextLength: 1_000,
  maxOutputTokens: 500,
  price: routes[0]?.price ?? null,
  routes,
  ...more,
});

export const catalogOf = (models: readonly Model[], auto: Record<string, readonly string[]> = {}): Catalog =>
  openCatalog({
    models: new Map(models.map((one) => [one.id, one])),
    auto: new Map(Object.entries(auto)),
    hosts: new Map(models.flatMap(({ routes }) => routes.map((one) => [one.host.id, one.host] as const))),
  });

export const BALANCE = "bal_one" as BalanceId;

export const routeStateOf = (
  more: Partial<RouteState> & { readonly down?: readonly string[] } = {},
): RouteState => ({
  // In the order of their names, which recovers first.
  restMs: (one) => 1 + (more.down?.indexOf(one.host.id) ?? -1),
  usable: (one) => !more.down?.includes(one.host.id),
  verifiedFree: () => true,
  speed: () => null,
  lastAttempt: () => null,
  latencyMs: () => null,
  throughput: () => null,
  explorationDueMs: () => 0,
  takesFallbacks: () => true,
  ...more,
});

export const queryFor = (name: string, more: Partial<RouteQuery> = {}): RouteQuery => ({
  model: name,
  surface: "chat.completions",
  stream: false,
  overrides: NO_OVERRIDES,
  allowedModels: null,
  promptEstimate: 10,
  members: [],
  maxHosts: 3,
  order: "listed",
  sticky: null,
  conversation: null,
  by: BALANCE,
  chance: () => 0,
  ...more,
});

export const servedIn = (firstTokenMs: number | null, promptTokens = 10) =>
  ({ kind: "served", firstTokenMs, promptTokens, by: BALANCE }) satisfies Observation;

/** By the host's own doing. */
export const failedFor = (restMs: number | null, wholeHost = false) =>
  ({
    kind: "failed",
    wholeHost,
    restMs,
    by: BALANCE,
    doubtful: false,
    detail: "status 500",
  }) satisfies Observation;

/** `author/model@host`, in the order of the tries. */
export const tries = ({ candidates }: Plan): string[] =>
  candidates.map(({ model: { id }, route: { host } }: Candidate) => `${id}@${host.id}`);
