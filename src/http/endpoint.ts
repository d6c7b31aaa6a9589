import type { About } from "../api/about.ts";
import { bookkeepingDown, contended, StoreContended, StoreUnreachable } from "../units/errors/bookkeeping.ts";
import { internalError, type Refusal, refuse, refused } from "../units/errors/refusal.ts";
import { loggingChanges } from "./change-origin.ts";
import { csrfRefusal } from "./csrf.ts";
import type { HttpDeps } from "./deps.ts";
import { nextTurn } from "./event-loop-turn.ts";
import { type HttpExchange, pathOf } from "./exchange.ts";
import { JsonReply, refusalResponse, replyResponse } from "./reply.ts";
import { unreadResponse } from "./unread-response.ts";

/** One row of the table of operations (contract §4). Paths under `/v1` are served under `/v1/v1` too. */
export interface Endpoint {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE" | "OPTIONS";
  readonly path: string;
  /** Nearly all requests are for it, so nothing stands before it; its path has no parameters. */
  readonly isBusy?: boolean;
  /** What the API's document says of it. */
  readonly about: About;
  /** Returns a reply, a refusal or a response; any other object is the JSON of the first status in `about.answers`. */
  readonly handle: (exchange: HttpExchange) => Promise<object> | object;
}

/** Whether the configuration in force has what the endpoint is for. */
export const isServed = ({ about: { needs } }: Endpoint, { config }: Pick<HttpDeps, "config">): boolean =>
  needs === undefined || config.settings.features.has(needs);

/** Runs an endpoint. Whatever happens, the answer has the specification's form and a receipt id. */
export async function answer(endpoint: Endpoint, exchange: HttpExchange): Promise<Response> {
  const { request, deps } = exchange;
  try {
    const outcome =
      severalHosts(request) ??
      trailers(request) ??
      csrfRefusal(endpoint.about, request, deps.config.settings) ??
      (await loggingChanges(endpoint, exchange, () => endpoint.handle(exchange)));
    if (refused(outcome) ? outcome.details.closing !== true : endpoint.isBusy !== true) await nextTurn();
    return closingWhereStopping(responseOf(outcome, endpoint, exchange), deps);
  } catch (error) {
    return closingWhereStopping(refusal(failure(error, exchange), exchange), deps);
  } finally {
    exchange.giveRoomBack();
  }
}

function failure(error: unknown, { request, receipt, deps }: HttpExchange): Refusal {
  if (error instanceof StoreContended) return contended();
  if (error instanceof StoreUnreachable) {
    deps.onFault(error, receipt);
    return bookkeepingDown();
  }
  // Reading the body of a client that has left rejects, and nobody is there to be answered.
  if (!request.signal.aborted) deps.onFault(error, receipt);
  return deps.books.diskRefused(error) ? bookkeepingDown() : internalError();
}

function responseOf(outcome: object, { about }: Endpoint, exchange: HttpExchange): Response {
  if (outcome instanceof Response) return outcome;
  if (refused(outcome)) return refusal(outcome, exchange);
  const reply =
    outcome instanceof JsonReply ? outcome : new JsonReply(Number(Object.keys(about.answers)[0]), outcome);
  return replyResponse(reply, exchange.receipt);
}

/** Clients that keep connections open learn with the answer that this one is not to be used again. */
export function closingWhereStopping(response: Response, deps: Pick<HttpDeps, "lifecycle">): Response {
  if (deps.lifecycle.isStopping) response.headers.set("connection", "close");
  return response;
}

export function refusal(
  why: Refusal,
  { request, receipt, deps }: HttpExchange,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const form = {
    headers,
    baseUrl: deps.config.settings.baseUrl,
    language: MESSAGES.test(pathOf(request)) ? ("messages" as const) : ("plain" as const),
  };
  return why.details.bodyUnread === true
    ? unreadResponse(why, receipt, form, deps.clock)
    : refusalResponse(why, receipt, form);
}

const MESSAGES = /^(\/v1){1,2}\/messages(\/|$)/;

/**
 * Two Host headers arrive joined by a comma, which no host has. A client that sends two may show a proxy on
 * the way one thing and the gateway another.
 */
function severalHosts(request: Request): Refusal | null {
  return request.headers.get("host")?.includes(",") === true
    ? refuse("invalid_request", "The request has more than one Host header.", { param: "Host" })
    : null;
}

/**
 * Bun takes trailers for the next request, refuses that, and closes the connection: only what is answered
 * before it gets so far arrives.
 */
function trailers({ headers }: Request): Refusal | null {
  return headers.has("trailer")
    ? refuse("invalid_request", "Trailers after the body are not supported. Send the request without them.", {
        param: "Trailer",
        closing: true,
      })
    : null;
}
