import { WEBSOCKET } from "../../api/generation.ts";
import { notAKey, tooMuchUnpaid } from "../../generation/refusals.ts";
import type { FullSlots } from "../../hosts/slots/connection-slots.ts";
import { wideNetwork } from "../../ledger/limits/address.ts";
import type { Unpaid } from "../../ledger/limits/unpaid-allowance.ts";
import { sessionOf } from "../../routing/session-ids.ts";
import { type Refusal, refuse } from "../../units/errors/refusal.ts";
import { suspension } from "../../units/errors/suspension-refusal.ts";
import { bearerOf, missingKey } from "../authentication.ts";
import { paysFor } from "../body-room.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint } from "../endpoint.ts";
import type { HttpExchange } from "../exchange.ts";
import { ResponsesConnection } from "./responses-connection.ts";

/**
 * The Responses API over WebSocket, at the address of its requests. Whatever keeps a connection from being upgraded is
 * answered over HTTP; where requests are served all the same, with 426, after which Codex sends them at once.
 */
export const webSocketEndpoint = (): Endpoint => ({
  method: "GET",
  path: "/v1/responses",
  isBusy: true,
  about: WEBSOCKET,
  async handle(exchange) {
    const why = await upgraded(exchange);
    if (why === null) return SWITCHED();
    exchange.deps.generation.turnedAway("responses", why.code);
    return why;
  },
});

/** The server has answered; what is returned to it is not sent. */
const SWITCHED = (): Response => new Response(null, { status: 101 });

async function upgraded(exchange: HttpExchange): Promise<Refusal | null> {
  const { request, deps } = exchange;
  const secret = bearerOf(request) ?? offeredKey(request);
  if (secret === null) return missingKey(request);
  if (!asksForWebSocket(request)) return upgradeRequired();
  const { clock, keyring } = deps.keyDeps;
  const { dashboardUrl, contact, bodyBytes } = deps.config.settings;
  const holder = await keyring.identify(secret, clock.now());
  if (holder === null) return notAKey(secret, dashboardUrl);
  const { key, balance } = holder;
  if (balance.suspended !== null) return suspension(balance.suspended, contact);
  if (deps.lifecycle.isStopping) return notNow("The gateway is stopping.");
  const { sockets } = deps;
  const session = sessionOf(request.headers, {});
  if (session !== null && sockets.hasSentTooMuch(session, key.id))
    return notNow(`This session sent a message of more than ${sockets.messageBytes} bytes.`);
  const pays = await paysFor(balance.id, bodyBytes, deps);
  const blocks = exchange.blocks();
  const network = wideNetwork(blocks);
  const unpaidWaitS = pays ? null : waitUnpaid({ balance: balance.id, network }, blocks, deps);
  if (unpaidWaitS !== null) return notNow(tooMuchUnpaid(unpaidWaitS).message);
  // Nothing awaits from here on.
  const release = sockets.admit({ balance: balance.id, network, pays });
  if (typeof release !== "function") return notNow(fullSentence(release, pays));
  const headers = turnHeaders(request.headers);
  const opener = { secret, headers, blocks: () => blocks, balance: balance.id, network, pays };
  const memory = pays ? sockets.memory : sockets.unpaidMemory;
  const connection = new ResponsesConnection(opener, memory, deps, (closed, sentTooMuch) => {
    release();
    if (sentTooMuch && session !== null) sockets.sentTooMuch(session, key.id);
    sockets.closed(closed);
  });
  if (!exchange.upgrade(connection)) {
    release();
    return upgradeRequired();
  }
  sockets.opened(connection);
  return null;
}

/**
 * The server reads a message whole before anybody is asked. So who could not pay for the largest one gets a connection only
 * while one may be read for nothing: otherwise they would send one on each of ever new connections.
 */
const waitUnpaid = (sender: Unpaid, blocks: readonly string[], deps: HttpDeps): number | null =>
  deps.unpaidRequests.waitS(sender.balance, () => blocks, { bytes: 0, writes: false }) ??
  deps.bodies.unpaid.waitS(sender, deps.sockets.messageBytes);

export const asksForWebSocket = ({ method, headers }: Request): boolean =>
  method === "GET" && headers.get("upgrade")?.toLowerCase() === "websocket";

/** Pages cannot set headers of a WebSocket; OpenAI's client offers its key among the subprotocols. */
function offeredKey({ headers }: Request): string | null {
  const offered = headers.get("sec-websocket-protocol")?.split(",") ?? [];
  const found = offered.map((one) => one.trim()).find((one) => one.startsWith(OFFERED_KEY));
  return found?.slice(OFFERED_KEY.length) ?? null;
}

const OFFERED_KEY = "openai-insecure-api-key.";

/** What each turn has of the request that opened the connection; what was meant for that request alone stays behind. */
function turnHeaders(sent: Headers): Headers {
  const headers = new Headers(sent);
  for (const name of [...headers.keys()]) if (OF_UPGRADE.test(name)) headers.delete(name);
  if (headers.get("openai-beta")?.includes("websocket") === true) headers.delete("openai-beta");
  return headers;
}

const OF_UPGRADE = /^(sec-websocket-.*|upgrade|connection|content-type|content-length|idempotency-key)$/;

const upgradeRequired = (): Refusal =>
  refuse(
    "unsupported_endpoint",
    "GET /v1/responses is served over WebSocket (RFC 6455, version 13), and the request does not ask for one as it must. Proxies on the way have to pass on `Upgrade` and `Connection`. Or send the request with POST.",
    { status: 426, upgrade: "websocket" },
  );

const notNow = (why: string): Refusal =>
  refuse("rate_limited", `${why} Send requests with POST meanwhile.`, { status: 426, upgrade: "HTTP/1.1" });

const fullSentence = (full: FullSlots | null, pays: boolean): string =>
  full === null ? "The gateway has no memory left for another WebSocket." : slotsSentence(full, pays);

const slotsSentence = ({ most, of }: FullSlots, pays: boolean): string =>
  `At most ${most} WebSockets${pays ? "" : " without the credit for a request of the largest size"} are kept open ${of === "gateway" ? "in all" : `for a ${of}`}, and so many are.`;
