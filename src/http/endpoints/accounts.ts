import type { Account } from "../../accounts/account.ts";
import { type Email, masked, readEmail } from "../../accounts/email.ts";
import {
  LINK_MINUTES,
  lookAtLink,
  requestLink,
  type SignedIn,
  signInByLink,
  signInByWallet,
} from "../../accounts/sign-in.ts";
import { walletMessage } from "../../accounts/wallet.ts";
import { ACCOUNTS, EmailFields, LinkFields, SignatureFields, WalletFields } from "../../api/accounts.ts";
import { type Refusal, refused } from "../../errors/refusal.ts";
import { isoTime } from "../../units/clock.ts";
import { EVERYBODY, type Throttled, takeOfAll, tooOften } from "../address.ts";
import { clientBlocks } from "../client-blocks.ts";
import { fromOwnPage, sessionCookie } from "../cookie.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint, Exchange } from "../endpoint.ts";
import { invalidField, readFields } from "../fields.ts";
import { againstForging, againstGuessing } from "../identity.ts";
import { ok, Reply } from "../reply.ts";

/**
 * Accounts without passwords: contract §4. Signing in is open to everybody, so it is throttled by network
 * address.
 */
export const accountEndpoints = (): Endpoint[] => [
  { method: "POST", path: "/v1/auth/email", about: ACCOUNTS.mail, handle: mailLink },
  { method: "POST", path: "/v1/auth/email/preview", about: ACCOUNTS.preview, handle: previewLink },
  { method: "POST", path: "/v1/auth/email/verify", about: ACCOUNTS.verifyLink, handle: useLink },
  { method: "POST", path: "/v1/auth/wallet", about: ACCOUNTS.message, handle: writeMessage },
  { method: "POST", path: "/v1/auth/wallet/verify", about: ACCOUNTS.verifySignature, handle: useSignature },
];

/** Per network address and hour. */
export const MOST_MAILS = 60;
const MOST_MESSAGES = 120;

async function mailLink(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const fields = await readFields(EmailFields, exchange, deps);
  if (refused(fields)) return fields;
  const address = emailOf(fields.email);
  if (refused(address)) return address;
  const busy = await tooMany("sign-in mails", "mails", MOST_MAILS, exchange, deps);
  if (busy !== null) return busy;
  const { mails } = deps.throttles;
  if ((await mails.take(EVERYBODY, deps.settings().mailsPerHour)) === null)
    await requestLink(deps.accounts, address);
  else {
    deps.mailsHeldBack();
    requestLink(deps.accounts, address, "accounts").catch((error) => deps.onFault(error, exchange.receipt));
  }
  return new Reply(202, { expires_in: LINK_MINUTES * 60 });
}

/** Whom a link is for, before anybody is signed in by it: it may have come from somebody else. */
async function previewLink(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const fields = await readFields(LinkFields, exchange, deps);
  if (refused(fields)) return fields;
  const link = await againstGuessing(exchange, deps, () => lookAtLink(deps.accounts, fields.token));
  if (refused(link)) return link;
  const { email, claimed, expiresAt } = link;
  return ok({ email: masked(email), claimed_balance_id: claimed, expires_at: isoTime(expiresAt) });
}

async function useLink(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const fields = await readFields(LinkFields, exchange, deps);
  if (refused(fields)) return fields;
  return againstGuessing(exchange, deps, async () =>
    signedIn(await signInByLink(deps.accounts, fields.token), exchange, deps),
  );
}

async function writeMessage(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const fields = await readFields(WalletFields, exchange, deps);
  if (refused(fields)) return fields;
  const busy = await tooMany("messages to sign", "messages", MOST_MESSAGES, exchange, deps);
  if (busy !== null) return busy;
  const message = await walletMessage(deps.accounts, fields.address, fields.chain_id);
  return refused(message) ? message : ok({ message });
}

async function useSignature(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const fields = await readFields(SignatureFields, exchange, deps);
  if (refused(fields)) return fields;
  return againstForging(exchange, deps, async () =>
    signedIn(await signInByWallet(deps.accounts, fields), exchange, deps),
  );
}

/**
 * The session, once. A page of the gateway's own gets it as a cookie too; another page must not be able to
 * put its own session into somebody's browser.
 */
function signedIn(made: SignedIn | Refusal, { request }: Exchange, deps: HttpDeps): Reply | Refusal {
  if (refused(made)) return made;
  const { account, session, expiresAt } = made;
  const seconds = Math.floor((expiresAt - deps.keyDeps.clock.now()) / 1_000);
  return new Reply(
    200,
    { session, expires_at: isoTime(expiresAt), account_id: account.id },
    fromOwnPage(request, deps.settings()) ? { "set-cookie": sessionCookie(session, seconds) } : {},
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
  exchange: Exchange,
  deps: HttpDeps,
): Promise<Refusal | null> {
  const wait = await takeOfAll(deps.throttles[throttled], clientBlocks(exchange, deps), limit);
  return wait === null ? null : tooOften(`asked for ${limit} ${what}`, wait);
}
