import { Elysia } from "elysia";
import { adminEndpoints } from "./admin.ts";
import { budgetEndpoints } from "./budgets.ts";
import { catalogEndpoints } from "./catalog.ts";
import type { HttpDeps } from "./deps.ts";
import { answer, type Endpoint, Exchange, refusal } from "./endpoint.ts";
import { generationEndpoints } from "./generation.ts";
import { keyEndpoints } from "./keys.ts";
import { meEndpoints } from "./me.ts";
import { pageEndpoints } from "./pages.ts";
import { receiptEndpoints } from "./receipts.ts";
import { internalError } from "./reply.ts";
import { unknownPath } from "./unknown-path.ts";

export type { HttpDeps } from "./deps.ts";

/**
 * The gateway's HTTP interface. Elysia finds the endpoint for a path, and that is all it does here: bodies are read by
 * http/body, and responses are built whole, because touching `set.headers` beside a streamed response makes Elysia
 * re-encode the stream and break characters that are split across chunks.
 */
export function httpApp(deps: HttpDeps) {
  const endpoints = [
    ...generationEndpoints(deps),
    ...keyEndpoints(deps),
    ...meEndpoints(deps),
    ...budgetEndpoints(deps),
    ...receiptEndpoints(deps),
    ...catalogEndpoints(deps),
    ...adminEndpoints(deps),
    ...pageEndpoints(deps),
  ].flatMap(withAlias);
  const app = new Elysia({ strictPath: true });
  for (const endpoint of endpoints) {
    app.route(
      endpoint.method,
      endpoint.path,
      ({ request, params, server }) =>
        answer(endpoint, new Exchange(request, params, server, deps.desk.random), deps),
      { parse: "none" },
    );
  }
  app.onError(({ request, code, error }) => {
    const exchange = new Exchange(request, {}, app.server, deps.desk.random);
    if (code !== "NOT_FOUND") {
      deps.onFault(error, exchange.receipt);
      return refusal(internalError(), exchange, deps);
    }
    const { why, headers } = unknownPath(request, endpoints);
    return refusal(why, exchange, deps, headers);
  });
  return app;
}

/** Clients whose base address must not hold `/v1` put one more before the path. */
const withAlias = (endpoint: Endpoint): Endpoint[] =>
  endpoint.path.startsWith("/v1/") ? [endpoint, { ...endpoint, path: `/v1${endpoint.path}` }] : [endpoint];

/**
 * Opens the port; 0 picks a free one. Bun would answer a large body with an empty 413 before any code of ours runs, so its
 * limit is set out of reach and http/body enforces ours. `reusePort` would let a second gateway share the port unseen.
 */
export function listen(app: ReturnType<typeof httpApp>, { hostname, port }: Address): Bun.Server<unknown> {
  app.listen({
    hostname,
    port,
    reusePort: false,
    idleTimeout: IDLE_SECONDS,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  });
  return app.server!;
}

export interface Address {
  readonly hostname: string;
  readonly port: number;
}

/** Longest silence of a client while it sends its request. */
const IDLE_SECONDS = 30;
