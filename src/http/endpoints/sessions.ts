import { endSession, sessionId, signedInAt, signOut } from "../../accounts/session.ts";
import { SESSIONS } from "../../api/sessions.ts";
import { type Refusal, refused } from "../../errors/refusal.ts";
import { isoTime } from "../../units/clock.ts";
import { cookieSession, noSessionCookie } from "../cookie.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint, Exchange } from "../endpoint.ts";
import { identify, type SessionIdentity, sessionsOnly } from "../identity.ts";
import { ok, Reply } from "../reply.ts";

/** An account's sessions, for their owner to see and to end. */
export const sessionEndpoints = (): Endpoint[] => [
  { method: "POST", path: "/v1/auth/logout", about: SESSIONS.logout, handle: logOut },
  { method: "GET", path: "/v1/auth/sessions", about: SESSIONS.list, handle: list },
  { method: "DELETE", path: "/v1/auth/sessions", about: SESSIONS.endAll, handle: endAll },
  { method: "DELETE", path: "/v1/auth/sessions/:id", about: SESSIONS.end, handle: end },
];

async function logOut(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await session(exchange, deps, "sign out");
  if (refused(who)) return who;
  await signOut(deps.accounts, who.session);
  return new Reply(204, undefined, withoutCookie(exchange));
}

async function list(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await session(exchange, deps, "list sessions");
  if (refused(who)) return who;
  const sessions = await deps.accounts.store.sessions(who.holdings.account.id);
  return ok({
    object: "list",
    data: sessions.map((one) => ({
      id: sessionId(one),
      signed_in_at: isoTime(signedInAt(one)),
      expires_at: isoTime(one.expiresAt),
      current: one.hash === who.session,
    })),
  });
}

async function end(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await session(exchange, deps, "end sessions");
  if (refused(who)) return who;
  const id = exchange.params.id ?? "";
  const why = await endSession(deps.accounts, who.holdings.account.id, id);
  if (why !== null) return why;
  const isOwn = sessionId({ hash: who.session }) === id;
  return new Reply(200, { id, ended: true }, isOwn ? withoutCookie(exchange) : {});
}

async function endAll(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await session(exchange, deps, "end sessions");
  if (refused(who)) return who;
  const ended = await deps.accounts.store.endSessions(who.holdings.account.id);
  return new Reply(200, { ended }, withoutCookie(exchange));
}

/** For a browser whose session has just ended. */
export const withoutCookie = ({ request }: Exchange): Record<string, string> =>
  cookieSession(request) === null ? {} : { "set-cookie": noSessionCookie() };

async function session(exchange: Exchange, deps: HttpDeps, what: string): Promise<SessionIdentity | Refusal> {
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  return who.kind === "owner" && who.by === "session" ? who : sessionsOnly(what);
}
