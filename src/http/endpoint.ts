import type { About } from "../api/about.ts";
import type { Release } from "../units/byte-budget.ts";
import { bookkeepingDown, contended, StoreContended, StoreUnreachable } from "../units/errors/bookkeeping.ts";
import { internalError, type Refusal, refuse, refused } from "../units/errors/refusal.ts";
import { newReceiptId, type ReceiptId } from "../units/id.ts";
import type { HttpDeps } from "./deps.ts";
import { foreignPage } from "./foreign-page.ts";
import type { ClientConnection, IdleTimeout } from "./idle-timeout.ts";
import { type JsonReply, refusalResponse, replyResponse } from "./reply.ts";
import { unreadResponse } from "./unread-response.ts";
import type { ResponsesConnection } from "./websocket/responses-connection.ts";

/** One row of the table of operations (contract §4). Paths under `/v1` are served under `/v1/v1` too. */
export interface Endpoint {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE" | "OPTIONS";
  readonly path: string;
  /** Nearly all requests are for it, so nothing stands before it; its path has no parameters. */
  readonly isBusy?: boolean;
  /** What the API's document says of it. */
  readonly about: About;
  readonly handle: (
    exchange: HttpExchange,
    deps: HttpDeps,
  ) => Promise<JsonReply | Refusal | Response> | JsonReply | Refusal | Response;
}

/** Whether the configuration in force has what the endpoint is for. */
export const isServed = ({ about: { needs } }: Endpoint, { settings }: Pick<HttpDeps, "settings">): boolean =>
  needs === undefined || settings().features.has(needs);

/** A request under way. */
export class HttpExchange implements ClientConnection {
  isExempt = false;
  /**
   * Lets in once more whoever showed a credential, or says why not. A body takes as long as its sender likes, and
   * the credential may have ended meanwhile; null for anybody else.
   */
  letInAgain: (() => Promise<Refusal | null>) | null = null;
  /** The body is large, and its sender could not pay for so much. */
  isUnpaid = false;
  private id: ReceiptId | null = null;
  private room: Release | null = null;

  constructor(
    readonly request: Request,
    readonly params: Readonly<Record<string, string>>,
    private readonly server: Bun.Server<unknown> | null,
    private readonly keyDeps: Pick<HttpDeps["keyDeps"], "clock" | "random">,
    private readonly idleTimeout: IdleTimeout,
  ) {}

  /** Made on first use, because generation requests make their own. */
  get receipt(): ReceiptId {
    this.id ??= newReceiptId(this.keyDeps.clock.now(), this.keyDeps.random);
    return this.id;
  }

  /** Address of the other end of the connection; null when it is gone. */
  get address(): string | null {
    return this.server?.requestIP(this.request)?.address ?? null;
  }

  /** The client waits for the gateway; see Patience. */
  gatewaysTurn(): void {
    this.idleTimeout.begin(this);
  }

  /**
   * The client has to take bytes or send its next request. Whoever calls `gatewaysTurn` must call this when
   * done.
   */
  clientsTurn(): void {
    this.idleTimeout.end(this);
  }

  /** Keeps the memory for the body until `giveRoomBack`. */
  keepRoom(release: Release): void {
    this.room = release;
  }

  /** The body is no longer needed. Does nothing if no room was taken. */
  giveRoomBack(): void {
    this.room?.();
    this.room = null;
  }

  /** Makes the connection a WebSocket; false where the request is none for that. */
  upgrade(connection: ResponsesConnection): boolean {
    return this.server?.upgrade(this.request, { data: connection }) ?? false;
  }

  setTimeout(seconds: number): void {
    this.server?.timeout(this.request, seconds);
  }
}

/** Runs an endpoint. Whatever happens, the answer has the specification's form and a receipt id. */
export async function answer(endpoint: Endpoint, exchange: HttpExchange, deps: HttpDeps): Promise<Response> {
  const { request } = exchange;
  try {
    const outcome =
      severalHosts(request) ??
      trailers(request) ??
      foreignPage(endpoint, request, deps.settings) ??
      (await endpoint.handle(exchange, deps));
    return closingWhereStopping(responseOf(outcome, exchange, deps), deps);
  } catch (error) {
    return closingWhereStopping(refusal(failure(error, exchange, deps), exchange, deps), deps);
  } finally {
    exchange.giveRoomBack();
  }
}

function failure(error: unknown, { request, receipt }: HttpExchange, deps: HttpDeps): Refusal {
  if (error instanceof StoreContended) return contended();
  if (error instanceof StoreUnreachable) {
    deps.onFault(error, receipt);
    return bookkeepingDown();
  }
  // Reading the body of a client that has left rejects, and nobody is there to be answered.
  if (!request.signal.aborted) deps.onFault(error, receipt);
  return deps.diskRefused(error) ? bookkeepingDown() : internalError();
}

function responseOf(
  outcome: JsonReply | Refusal | Response,
  exchange: HttpExchange,
  deps: HttpDeps,
): Response {
  if (outcome instanceof Response) return outcome;
  return refused(outcome) ? refusal(outcome, exchange, deps) : replyResponse(outcome, exchange.receipt);
}

/** Whoever keeps connections open learns with the answer that this one is not to be used again. */
export function closingWhereStopping(response: Response, deps: Pick<HttpDeps, "stopping">): Response {
  if (deps.stopping()) response.headers.set("connection", "close");
  return response;
}

export function refusal(
  why: Refusal,
  { request, receipt }: HttpExchange,
  deps: HttpDeps,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const form = {
    headers,
    baseUrl: deps.settings().baseUrl,
    language: MESSAGES.test(pathOf(request)) ? ("messages" as const) : ("plain" as const),
  };
  return why.details.bodyUnread === true
    ? unreadResponse(why, receipt, form, deps.keyDeps.clock)
    : refusalResponse(why, receipt, form);
}

const MESSAGES = /^(\/v1){1,2}\/messages(\/|$)/;

/**
 * Two Host headers arrive joined by a comma, which no host has. Whoever sends two may be telling a proxy on
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

export const pathOf = ({ url }: Request): string => PARTS.exec(url)![1]!;

export const queryOf = ({ url }: Request): URLSearchParams => new URLSearchParams(PARTS.exec(url)![2]);

/**
 * Path and query. Not read with `URL`, which throws where the host is no host: clients may send any, or none
 * at all, and then the URL is a path.
 */
const PARTS = /^(?:https?:\/\/[^/]*)?([^?#]*)(?:\?([^#]*))?/;
