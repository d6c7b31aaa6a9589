import { SESSIONS } from "../../api/sessions.ts";
import { endSession, sessionId, signedInAt, signOut } from "../../customers/accounts/session.ts";
import { isoTime } from "../../units/clock.ts";
import { cookieSession, noSessionCookie } from "../cookie.ts";
import type { Endpoint } from "../endpoint.ts";
import type { HttpExchange } from "../exchange.ts";
import { operation } from "../operation.ts";
import { JsonReply, list } from "../reply.ts";

/** An account's sessions, for their owner to see and to end. */
export const sessionEndpoints = (): Endpoint[] => [
  operation("POST /v1/auth/logout", SESSIONS.logout, async ({ who, exchange }, { accounts }) => {
    await signOut(accounts, who.session);
    return new JsonReply(204, undefined, withoutCookie(exchange));
  }),
  operation("GET /v1/auth/sessions", SESSIONS.list, async ({ who }, { accounts }) => {
    const sessions = await accounts.store.sessions(who.accountBalances.account.id);
    return list(
      sessions.map((one) => ({
        id: sessionId(one),
        signed_in_at: isoTime(signedInAt(one)),
        expires_at: isoTime(one.expiresAt),
        current: one.hash === who.session,
      })),
    );
  }),
  operation("DELETE /v1/auth/sessions", SESSIONS.endAll, async ({ who, exchange }, { accounts }) => {
    const ended = await accounts.store.endSessions(who.accountBalances.account.id);
    return new JsonReply(200, { ended }, withoutCookie(exchange));
  }),
  operation("DELETE /v1/auth/sessions/:id", SESSIONS.end, async ({ who, params, exchange }, { accounts }) => {
    const { id } = params;
    const why = await endSession(accounts, who.accountBalances.account.id, id);
    if (why !== null) return why;
    const isOwn = sessionId({ hash: who.session }) === id;
    return new JsonReply(200, { id, ended: true }, isOwn ? withoutCookie(exchange) : {});
  }),
];

/** For a browser whose session has just ended. */
export const withoutCookie = ({ request }: HttpExchange): Record<string, string> =>
  cookieSession(request) === null ? {} : { "set-cookie": noSessionCookie() };
