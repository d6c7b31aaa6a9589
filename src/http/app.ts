import { Elysia } from "elysia";
import type { Feature } from "../api/about.ts";
import { internalError } from "../units/errors/refusal.ts";
import { newReceiptId } from "../units/id.ts";
import { adminAccountEndpoints } from "./admin/accounts.ts";
import { adminBalanceEndpoints } from "./admin/balances.ts";
import { adminExportEndpoints } from "./admin/exports.ts";
import { adminHostEndpoints } from "./admin/hosts.ts";
import { adminModelListEndpoints } from "./admin/model-lists.ts";
import { adminNodeEndpoints } from "./admin/nodes.ts";
import { adminEndpoints } from "./admin/operations.ts";
import { operatorEndpoints } from "./admin/operators.ts";
import { fromAnyOrigin, preflights, readable } from "./cors.ts";
import type { HttpDeps } from "./deps.ts";
import { answer, closingWhereStopping, type Endpoint, isServed, refusal } from "./endpoint.ts";
import { accountEndpoints, ownershipEndpoints, sessionEndpoints } from "./endpoints/accounts.ts";
import { budgetEndpoints } from "./endpoints/budgets.ts";
import { stripeEventEndpoints } from "./endpoints/card-orders.ts";
import { catalogEndpoints } from "./endpoints/catalog.ts";
import { changeEndpoints } from "./endpoints/changes.ts";
import { claimEndpoints } from "./endpoints/claims.ts";
import { compatibleEndpoints } from "./endpoints/compatible.ts";
import { creditEndpoints } from "./endpoints/credits.ts";
import { eventEndpoints } from "./endpoints/events.ts";
import { generationEndpoints } from "./endpoints/generation.ts";
import { adminKeyEndpoints, keyEndpoints } from "./endpoints/keys.ts";
import { meEndpoints } from "./endpoints/me.ts";
import { paymentEndpoints } from "./endpoints/payments.ts";
import { receiptEndpoints } from "./endpoints/receipts.ts";
import { runEndpoints } from "./endpoints/runs.ts";
import { usageEndpoints } from "./endpoints/usage.ts";
import { webhookEndpoints } from "./endpoints/webhooks.ts";
import { nextTurn } from "./event-loop-turn.ts";
import { HttpExchange } from "./exchange.ts";
import { IdleTimeout } from "./idle-timeout.ts";
import type { ListenAddress } from "./listen-address.ts";
import { apiDocEndpoints } from "./pages/api-docs.ts";
import { movedPage } from "./pages/moved-pages.ts";
import { pageEndpoints } from "./pages/pages.ts";
import { refusalResponse } from "./reply.ts";
import { unknownPath } from "./unknown-path.ts";
import { webSocketHandler } from "./websocket/handler.ts";

/**
 * The gateway's HTTP interface. Elysia finds the endpoint for a path, and that is all it does here: bodies
 * are read by http/body, and responses are built whole, because touching `set.headers` next to a streamed
 * response makes Elysia re-encode the stream and break characters that are split across chunks.
 */
export function httpApp(deps: HttpDeps, silenceSeconds = SILENCE_SECONDS) {
  const idleTimeout = new IdleTimeout(silenceSeconds, deps.clock);
  const own = [...generationEndpoints(), ...controlEndpoints(), ...pageEndpoints(deps)];
  const endpoints = [...own, ...apiDocEndpoints(own, deps)].flatMap(withAlias);
  const served: EndpointHandler = (endpoint, request, params) => {
    // Not with Elysia's own `server`, which it would define again for every request.
    const exchange = new HttpExchange(request, params, app.server, deps, idleTimeout);
    if (!isServed(endpoint, deps)) return Promise.resolve(misdirected(exchange, endpoint.about.needs));
    const answered = answer(endpoint, exchange);
    return fromAnyOrigin(endpoint, request) ? answered.then(readable) : answered;
  };
  const misdirected = (exchange: HttpExchange, lacking?: Feature): Response => {
    const here = endpoints.filter((endpoint) => isServed(endpoint, deps));
    const { why, headers } = unknownPath(exchange.request, here, lacking);
    return closingWhereStopping(refusal(why, exchange, headers), deps);
  };
  const app = new Elysia({
    strictPath: true,
    // Names such as `gw` or `llm` are shorter than any on the internet: Elysia would take the first part of
    // the path for a part of the name, and find `/metrics` for `/anything/metrics`.
    handler: { standardHostname: false },
    serve: {
      development: false,
      idleTimeout: silenceSeconds,
      error: (failure) => lastResort(failure, deps),
      routes: busyRoutes(endpoints, served),
    },
  });
  // Before the endpoints: Elysia's hooks hold for what is added after them.
  app.onError(async ({ request, code, error }) => {
    try {
      await nextTurn();
      const exchange = new HttpExchange(request, {}, app.server, deps, idleTimeout);
      if (code !== "NOT_FOUND") throw error;
      const moved = movedPage(request);
      if (moved !== null) return closingWhereStopping(moved, deps);
      return misdirected(exchange);
    } catch (failure) {
      return lastResort(failure, deps);
    }
  });
  for (const endpoint of [...endpoints, ...preflights(endpoints)]) {
    app.route(endpoint.method, endpoint.path, ({ request, params }) => served(endpoint, request, params), {
      parse: "none",
    });
  }
  return app;
}

/** All endpoints but those that generate, and pages. */
export const controlEndpoints = (): Endpoint[] => [
  ...keyEndpoints(),
  ...meEndpoints(),
  ...accountEndpoints(),
  ...claimEndpoints(),
  ...sessionEndpoints(),
  ...ownershipEndpoints(),
  ...budgetEndpoints(),
  ...runEndpoints(),
  ...receiptEndpoints(),
  ...creditEndpoints(),
  ...eventEndpoints(),
  ...changeEndpoints(),
  ...webhookEndpoints(),
  ...paymentEndpoints(),
  ...stripeEventEndpoints(),
  ...usageEndpoints(),
  ...compatibleEndpoints(),
  ...catalogEndpoints(),
  ...adminEndpoints(),
  ...adminAccountEndpoints(),
  ...adminBalanceEndpoints(),
  ...adminKeyEndpoints(),
  ...adminHostEndpoints(),
  ...adminNodeEndpoints(),
  ...adminExportEndpoints(),
  ...adminModelListEndpoints(),
  ...operatorEndpoints(),
];

type EndpointHandler = (endpoint: Endpoint, request: Request, params: Params) => Promise<Response>;
type Params = Readonly<Record<string, string>>;

/**
 * The endpoints that nearly all requests are for, which Bun's router hands over itself. Elysia would make a
 * context and two more promises for each, and none of them is used.
 */
function busyRoutes(endpoints: readonly Endpoint[], served: EndpointHandler) {
  const routes: Record<string, Record<string, (request: Request) => Promise<Response>>> = {};
  for (const endpoint of endpoints) {
    const { isBusy, path, method } = endpoint;
    if (isBusy) routes[path] = { [method]: (request) => served(endpoint, request, NO_PARAMS) };
  }
  return routes;
}

const NO_PARAMS: Params = {};

/**
 * For a failure outside an endpoint, or while another failure is being answered. Elysia would answer with its
 * message, and Bun with a page that shows our source; so nothing may get that far, and nothing that could
 * fail is used here.
 */
function lastResort(failure: unknown, deps: HttpDeps): Response {
  const receipt = newReceiptId(deps.clock.now(), deps.random);
  deps.onFault(failure, receipt);
  const form = { baseUrl: "", language: "plain", headers: {} } as const;
  return closingWhereStopping(refusalResponse(internalError(), receipt, form), deps);
}

/**
 * How long a client may be silent while it sends its request, or leave bytes of an answer untaken. A stream
 * that nobody reads holds credit, a host's connection and memory. Any progress starts the time again, but Bun
 * notices what is taken only by the third of a socket buffer, which a slow line takes many seconds for.
 */
const SILENCE_SECONDS = 60;

/** Clients whose base address must not hold `/v1` put one more before the path. */
const withAlias = (endpoint: Endpoint): Endpoint[] =>
  endpoint.path.startsWith("/v1/") ? [endpoint, { ...endpoint, path: `/v1${endpoint.path}` }] : [endpoint];

/**
 * Opens the port; 0 picks a free one. Bun would answer a large body with an empty 413 before any code of ours
 * runs, so its limit is set out of reach and http/body enforces ours. Workers of one supervisor share a port;
 * without one, that would let a second gateway share it unseen.
 */
export function listen(
  app: ReturnType<typeof httpApp>,
  { hostname, port, shared }: ListenAddress,
  /** The largest over a WebSocket. */
  messageBytes: number,
): Bun.Server<unknown> {
  const before = process.listeners("beforeExit");
  app.listen({
    hostname,
    port,
    reusePort: shared,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    websocket: webSocketHandler(messageBytes),
  });
  // Elysia's own, which would stop the server when the process ends by itself, and keeps a gateway that has
  // been stopped, 29 MB of it, for as long as the process.
  for (const one of process.listeners("beforeExit"))
    if (!before.includes(one)) process.off("beforeExit", one);
  return app.server!;
}
