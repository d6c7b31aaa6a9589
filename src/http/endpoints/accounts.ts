import { ACCOUNTS, OWNERSHIP, SESSIONS, type SessionAnswer } from "../../api/accounts.ts";
import type { Account } from "../../customers/accounts/account.ts";
import { closeBalance, deleteAccount } from "../../customers/accounts/deletion.ts";
import { type Email, masked, readEmail } from "../../customers/accounts/email.ts";
import { replaceRecovery } from "../../customers/accounts/recovery.ts";
import { endSession, sessionId, signedInAt, signOut } from "../../customers/accounts/session.ts";
import {
  LINK_MINUTES,
  readLink,
  requestLink,
  type SignedIn,
  signInByLink,
  signInByWallet,
} from "../../customers/accounts/sign-in.ts";
import { walletMessage } from "../../customers/accounts/wallet.ts";
import { newRecoverySecret } from "../../customers/keys/secret.ts";
import { invalidRecovery } from "../../generation/refusals.ts";
import { EVERYBODY, type Throttled, takeOfAll, tooOften } from "../../ledger/limits/address.ts";
import { isoTime } from "../../units/clock.ts";
import { invalidField, type Refusal, refused } from "../../units/errors/refusal.ts";
import { hashSecret } from "../../units/secret-hash.ts";
import { againstForging, againstGuessing, notOfAccount } from "../authentication.ts";
import { cookieSession, fromOwnPage, noSessionCookie, sessionCookie } from "../cookie.ts";
import type { HttpDeps } from "../deps.ts";
import type { HttpExchange } from "../exchange.ts";
import { operation } from "../operation.ts";
import { JsonReply, list } from "../reply.ts";

/**
 * Accounts without passwords: contract §4. Signing in is open to everybody, so it is throttled by network
 * address.
 */
export const accountEndpoints = () => [
  operation("POST /v1/auth/email", ACCOUNTS.mail, async ({ fields, exchange }, deps) => {
    const address = emailOf(fields.email);
    if (refused(address)) return address;
    const busy = await tooMany("sign-in mails", "mails", MAX_MAILS, exchange);
    if (busy !== null) return busy;
    const { mails } = deps.throttles;
    if ((await mails.take(EVERYBODY, deps.config.settings.mailsPerHour)) === null)
      await requestLink(deps.accounts, address);
    else {
      deps.accounts.mailer.heldBack();
      requestLink(deps.accounts, address, "accounts").catch((error) => deps.onFault(error, exchange.receipt));
    }
    return { expires_in: LINK_MINUTES * 60 };
  }),
  // Whom a link is for, before anybody is signed in by it: it may have come from somebody else.
  operation("POST /v1/auth/email/preview", ACCOUNTS.preview, async ({ fields, exchange }, deps) => {
    const link = await againstGuessing(exchange, () => readLink(deps.accounts, fields.token));
    if (refused(link)) return link;
    const { email, claimed, expiresAt } = link;
    return { email: masked(email), claimed_balance_id: claimed, expires_at: isoTime(expiresAt) };
  }),
  operation("POST /v1/auth/email/verify", ACCOUNTS.verifyLink, ({ fields, exchange }, deps) =>
    againstGuessing(exchange, async () =>
      signedIn(await signInByLink(deps.accounts, fields.token), exchange),
    ),
  ),
  operation("POST /v1/auth/wallet", ACCOUNTS.message, async ({ fields, exchange }, deps) => {
    const busy = await tooMany("messages to sign", "messages", MAX_MESSAGES, exchange);
    if (busy !== null) return busy;
    const message = await walletMessage(deps.accounts, fields.address, fields.chain_id);
    return refused(message) ? message : { message };
  }),
  operation("POST /v1/auth/wallet/verify", ACCOUNTS.verifySignature, ({ fields, exchange }, deps) =>
    againstForging(exchange, async () => signedIn(await signInByWallet(deps.accounts, fields), exchange)),
  ),
];

/** Per network address and hour. */
export const MAX_MAILS = 60;
const MAX_MESSAGES = 120;

/**
 * The session, once. A page of the gateway's own gets it as a cookie too; another page must not be able to
 * put its own session into somebody's browser.
 */
function signedIn(
  made: SignedIn | Refusal,
  { request, deps }: HttpExchange,
): JsonReply<SessionAnswer> | Refusal {
  if (refused(made)) return made;
  const { account, session, expiresAt } = made;
  const seconds = Math.floor((expiresAt - deps.clock.now()) / 1_000);
  return new JsonReply(
    200,
    { session, expires_at: isoTime(expiresAt), account_id: account.id },
    fromOwnPage(request, deps.config.settings) ? { "set-cookie": sessionCookie(session, seconds) } : {},
  );
}

/** By what an account is known. */
export const identityView = ({ email, wallet }: Pick<Account, "email" | "wallet">) => ({
  ...(email === null ? {} : { email }),
  ...(wallet === null ? {} : { wallet }),
});

export const emailOf = (text: string): Email | Refusal =>
  readEmail(text) ??
  invalidField("email", "`email` must be an email address like name@example.com, with its domain in ASCII.");

export async function tooMany(
  what: string,
  throttled: Throttled,
  limit: number,
  exchange: HttpExchange,
): Promise<Refusal | null> {
  const wait = await takeOfAll(exchange.deps.throttles[throttled], exchange.blocks(), limit);
  return wait === null ? null : tooOften(`asked for ${limit} ${what}`, wait);
}

/** An account's sessions, for their owner to see and to end. */
export const sessionEndpoints = () => [
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
const withoutCookie = ({ request }: HttpExchange): Record<string, string> =>
  cookieSession(request) === null ? {} : { "set-cookie": noSessionCookie() };

/** What owners do about their own credentials: replace what leaked, and end everything. */
export const ownershipEndpoints = () => [
  operation("POST /v1/me/recovery", OWNERSHIP.recovery, async ({ who }, deps) => {
    const secret = newRecoverySecret(deps.random);
    const by =
      who.by === "recovery"
        ? { recovery: who.secret }
        : { balance: who.balance.id, account: who.accountBalances.account.id };
    const balance = await replaceRecovery(deps.accounts, by, hashSecret(secret));
    if (refused(balance)) return balance;
    // Between letting in and replacing, somebody else was faster.
    if (balance === null)
      return who.by === "recovery" ? invalidRecovery(deps.config.settings.dashboardUrl) : notOfAccount();
    return { balance_id: balance, recovery_secret: secret, recovery_url: recoveryUrl(secret, deps) };
  }),
  operation("DELETE /v1/me", OWNERSHIP.deletion, async ({ who, fields, exchange }, { accounts, config }) => {
    const [what, id] =
      who.by === "session" ? ["account", who.accountBalances.account.id] : ["balance", who.balance.id];
    if (fields.confirm !== id) {
      return invalidField(
        "confirm",
        `\`confirm\` must be the id of the ${what} that ends for good: \`${id}\`.`,
      );
    }
    const ended =
      who.by === "session"
        ? await deleteAccount(accounts, who.accountBalances.account.id)
        : await closeBalance(accounts, who.secret);
    if (ended === null) return invalidRecovery(config.settings.dashboardUrl);
    if (refused(ended)) return ended;
    const { closed, detached } = ended;
    const body = { id, deleted: true as const, closed_balance_ids: closed, detached_balance_ids: detached };
    return new JsonReply(200, body, withoutCookie(exchange));
  }),
];

/** Behind the hash, so that no server on the way ever sees it. */
export const recoveryUrl = (secret: string, deps: HttpDeps): string =>
  `${deps.config.settings.dashboardUrl}#recover=${secret}`;
