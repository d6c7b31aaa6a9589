import { ACCOUNTS, type SessionAnswer } from "../../api/accounts.ts";
import type { Account } from "../../customers/accounts/account.ts";
import { type Email, masked, readEmail } from "../../customers/accounts/email.ts";
import {
  LINK_MINUTES,
  readLink,
  requestLink,
  type SignedIn,
  signInByLink,
  signInByWallet,
} from "../../customers/accounts/sign-in.ts";
import { walletMessage } from "../../customers/accounts/wallet.ts";
import { EVERYBODY, type Throttled, takeOfAll, tooOften } from "../../ledger/limits/address.ts";
import { isoTime } from "../../units/clock.ts";
import { invalidField, type Refusal, refused } from "../../units/errors/refusal.ts";
import { againstForging, againstGuessing } from "../authentication.ts";
import { clientBlocks } from "../client-blocks.ts";
import { fromOwnPage, sessionCookie } from "../cookie.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint } from "../endpoint.ts";
import type { HttpExchange } from "../exchange.ts";
import { operation } from "../operation.ts";
import { JsonReply, ok } from "../reply.ts";

/**
 * Accounts without passwords: contract §4. Signing in is open to everybody, so it is throttled by network
 * address.
 */
export const accountEndpoints = (): Endpoint[] => [
  operation("POST /v1/auth/email", ACCOUNTS.mail, async ({ fields, exchange }, deps) => {
    const address = emailOf(fields.email);
    if (refused(address)) return address;
    const busy = await tooMany("sign-in mails", "mails", MAX_MAILS, exchange, deps);
    if (busy !== null) return busy;
    const { mails } = deps.throttles;
    if ((await mails.take(EVERYBODY, deps.config.settings.mailsPerHour)) === null)
      await requestLink(deps.accounts, address);
    else {
      deps.accounts.mailer.heldBack();
      requestLink(deps.accounts, address, "accounts").catch((error) => deps.onFault(error, exchange.receipt));
    }
    return new JsonReply(202, { expires_in: LINK_MINUTES * 60 });
  }),
  // Whom a link is for, before anybody is signed in by it: it may have come from somebody else.
  operation("POST /v1/auth/email/preview", ACCOUNTS.preview, async ({ fields, exchange }, deps) => {
    const link = await againstGuessing(exchange, deps, () => readLink(deps.accounts, fields.token));
    if (refused(link)) return link;
    const { email, claimed, expiresAt } = link;
    return ok({ email: masked(email), claimed_balance_id: claimed, expires_at: isoTime(expiresAt) });
  }),
  operation("POST /v1/auth/email/verify", ACCOUNTS.verifyLink, ({ fields, exchange }, deps) =>
    againstGuessing(exchange, deps, async () =>
      signedIn(await signInByLink(deps.accounts, fields.token), exchange, deps),
    ),
  ),
  operation("POST /v1/auth/wallet", ACCOUNTS.message, async ({ fields, exchange }, deps) => {
    const busy = await tooMany("messages to sign", "messages", MAX_MESSAGES, exchange, deps);
    if (busy !== null) return busy;
    const message = await walletMessage(deps.accounts, fields.address, fields.chain_id);
    return refused(message) ? message : ok({ message });
  }),
  operation("POST /v1/auth/wallet/verify", ACCOUNTS.verifySignature, ({ fields, exchange }, deps) =>
    againstForging(exchange, deps, async () =>
      signedIn(await signInByWallet(deps.accounts, fields), exchange, deps),
    ),
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
  { request }: HttpExchange,
  deps: HttpDeps,
): JsonReply<SessionAnswer> | Refusal {
  if (refused(made)) return made;
  const { account, session, expiresAt } = made;
  const seconds = Math.floor((expiresAt - deps.keyDeps.clock.now()) / 1_000);
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
  deps: HttpDeps,
): Promise<Refusal | null> {
  const wait = await takeOfAll(deps.throttles[throttled], clientBlocks(exchange, deps), limit);
  return wait === null ? null : tooOften(`asked for ${limit} ${what}`, wait);
}
