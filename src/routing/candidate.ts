import type { RouteAvailability } from "../catalog/availability.ts";
import type { Catalog, HostOrder, Model, Route, SurfaceName } from "../catalog/catalog.ts";
import type { Price } from "../catalog/price.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import type { BalanceId } from "../units/id.ts";
import type { KeyPolicy } from "../units/key-policy.ts";
import type { ConversationId } from "./conversation.ts";
import type { Overrides, RequestChanges } from "./overrides.ts";
import { policyAllows } from "./route-filter.ts";
import type { Speed } from "./speed.ts";

/** One route that a request may be tried on, and how. */
export interface Candidate {
  readonly model: Model;
  readonly route: Route;
  /** Zero on the Open Tier. */
  readonly price: Price;
  /** The language that the host is spoken to in: the client's own where it can be. */
  readonly hostSurface: SurfaceName;
  /** What an entry of `fallbacks` changes in the request for this model; absent: nothing. */
  readonly changes?: RequestChanges;
  /** The operator's fallback: tried only once a model has declined. */
  readonly isFallback?: true;
  /** The host goes on with these by itself, in order, where the model declines; all are its own. Absent: it does not. */
  readonly nativeFallbacks?: readonly Candidate[];
  /** Tried to learn how fast it is, and no home for a conversation. */
  readonly isExplored?: true;
}

/** Its host cannot stream. */
export const answersWhole = ({ route }: Candidate): boolean =>
  (route.quirks ?? route.host.quirks).noStream === true;

/** The output ceiling that the request names where this candidate serves it; null: none. */
export function ceilingAt(
  { changes }: Candidate,
  { maxOutputTokens }: Pick<GenerationRequest, "maxOutputTokens">,
) {
  const changed = changes?.max_tokens;
  return typeof changed === "number" ? changed : maxOutputTokens;
}

/** What a request asks of routing. */
export interface RouteQuery {
  readonly model: string;
  readonly surface: SurfaceName;
  readonly stream: boolean;
  readonly overrides: Overrides;
  readonly allowedModels: readonly string[] | null;
  /** Which hosts the key may use; null or absent: all. */
  readonly policy?: KeyPolicy | null;
  readonly promptEstimate: number;
  /** The members of its body, for `provider.require_parameters`. */
  readonly members: readonly string[];
  /** Hosts that one request is tried on at most. */
  readonly maxHosts: number;
  /** The operator's choice between hosts, where neither the request nor the model has one. */
  readonly order: HostOrder;
  /** Where the conversation was served before; null when that is not known. */
  readonly sticky: StickyRoute | null;
  /** The conversation that it is a turn of; null where nothing names one. */
  readonly conversation: ConversationId | null;
  readonly by: BalanceId;
  /** A number from 0, below 1, drawn each time. */
  readonly chance: () => number;
}

/** A query with what is sold, and what is known of it right now. */
export interface Planning extends RouteQuery {
  readonly catalog: Catalog;
  readonly routeState: RouteState;
}

export interface StickyRoute {
  readonly model: string;
  readonly host: string;
  readonly hostModel: string;
}

/** What is known of the routes right now; `Health` knows it. */
export interface RouteState extends RouteAvailability {
  /** For how many milliseconds the route takes no requests because it fails; 0 when it takes one now. */
  restMs(route: Route): number;
  /** How the last attempt at it ended; null before the first. */
  lastAttempt(route: Route): "served" | "failed" | null;
  /** What was measured of the route; null before anything was. */
  speed(route: Route): Speed | null;
  /** As this customer, or else the last customers, saw it; null before anybody did. */
  latencyMs(route: Route, promptTokens: number, by: BalanceId): number | null;
  /** The same in tokens a second. */
  throughput(route: Route, by: BalanceId): number | null;
  /** Whether the host may be sent `fallbacks`: it has not lately refused these behind that one. */
  takesFallbacks(route: Route, next: readonly Route[], by: BalanceId): boolean;
  /** Milliseconds since anybody was sent there to look, Infinity if nobody was; 0 where this customer is not to be. */
  explorationDueMs(route: Route, by: BalanceId): number;
}

/** Routes that can be billed: never a free one, never one without a price. */
export const paidCandidates = (model: Model, query: CandidateQuery): Candidate[] =>
  candidatesOf(model, query, paidPrice);

const paidPrice = ({ free, price }: Route): Price | null => (free ? null : price);

/** Routes that cost nothing and were shown to. */
export const freeCandidates = (model: Model, planning: Planning): Candidate[] => {
  const { routeState } = planning;
  return candidatesOf(model, planning, (route) =>
    route.free && routeState.verifiedFree(route) && routeState.restMs(route) === 0 ? FREE_PRICE : null,
  );
};

const FREE_PRICE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } as Price;

type CandidateQuery = Pick<RouteQuery, "surface" | "policy">;

/** The model's routes that have a price for this. */
function candidatesOf(
  model: Model,
  { surface, policy }: CandidateQuery,
  priceOf: (route: Route) => Price | null,
): Candidate[] {
  const allows = policyAllows(policy);
  const candidates: Candidate[] = [];
  for (const route of model.routes) {
    const price = priceOf(route);
    if (price !== null && allows(route, price))
      candidates.push({ model, route, price, hostSurface: preferredLanguage(route, surface) });
  }
  return candidates;
}

const preferredLanguage = ({ host }: Route, client: SurfaceName): SurfaceName =>
  PREFERRED[client].find((spoken) => host.speaks.includes(spoken))!;

/**
 * The languages of hosts, by how much of the client's they can say: thoughts come back sealed best on the
 * first others.
 */
const PREFERRED: Readonly<Record<SurfaceName, readonly SurfaceName[]>> = {
  "chat.completions": ["chat.completions", "responses", "messages"],
  responses: ["responses", "messages", "chat.completions"],
  messages: ["messages", "responses", "chat.completions"],
};
