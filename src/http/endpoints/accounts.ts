import type { Account } from "../../accounts/account.ts";
import { claimByEmail, claimByWallet, settleClaim, withdrawClaim } from "../../accounts/claim.ts";
import { type Email, readEmail } from "../../accounts/email.ts";
import {
  LINK_MINUTES,
  requestLink,
  type SignedIn,
  signInByLink,
  signInByWallet,
  signOut,
} from "../../accounts/sign-in.ts";
import { walletMessage } from "../../accounts/wallet.ts";
import { type Refusal, refuse, refused } from "../../errors/refusal.ts";
import { isoTime } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import { type Throttled, takeOfAll, tooOften } from "../address.ts";
import { clientBlocks } from "../client-blocks.ts";
import { cookieSession, fromOwnPage, noSessionCookie, sessionCookie } from "../cookie.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint, Exchange } from "../endpoint.ts";
import { invalidField, readFields } from "../fields.ts";
import {
  againstForging,
  againstGuessing,
  identify,
  keysOnly,
  ownersOnly,
  sessionsOnly,
} from "../identity.ts";
import { ok, Reply } from "../reply.ts";
import {
  ACCOUNTS,
  ClaimFields,
  EmailFields,
  LinkFields,
  SignatureFields,
  WalletFields,
} from "./account-schemas.ts";

/**
 * Accounts without passwords: contract §4. Signing in is open to everybody, so it is throttled by network
 * address.
 */
export const accountEndpoints = (): Endpoint[] => [
  { method: "POST", path: "/v1/auth/email", about: ACCOUNTS.mail, handle: mailLink },
  { method: "POST", path: "/v1/auth/email/verify", about: ACCOUNTS.verifyLink, handle: useLink },
  { method: "POST", path: "/v1/auth/wallet", about: ACCOUNTS.message, handle: writeMessage },
  { method: "POST", path: "/v1/auth/wallet/verify", about: ACCOUNTS.verifySignature, handle: useSignature },
  { method: "POST", path: "/v1/auth/logout", about: ACCOUNTS.logout, handle: endSession },
  { method: "POST", path: "/v1/me/claim", about: ACCOUNTS.claim, handle: claim },
  { method: "DELETE", path: "/v1/me/claim", about: ACCOUNTS.withdraw, handle: withdraw },
  {
    method: "POST",
    path: "/v1/me/claims/:id",
    about: ACCOUNTS.confirm,
    handle: (exchange, deps) => settle(exchange, deps, "confirm"),
  },
  {
    method: "DELETE",
    path: "/v1/me/claims/:id",
    about: ACCOUNTS.decline,
    handle: (exchange, deps) => settle(exchange, deps, "decline"),
  },
];

/** Per network address and hour. */
const MOST_MAILS = 60;
const MOST_MESSAGES = 120;

async function mailLink(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const fields = await readFields(EmailFields, exchange, deps);
  if (refused(fields)) return fields;
  const address = emailOf(fields.email);
  if (refused(address)) return address;
  const busy = await tooMany("sign-in mails", "mails", MOST_MAILS, exchange, deps);
  if (busy !== null) return busy;
  await requestLink(deps.accounts, address);
  return new Reply(202, { expires_in: LINK_MINUTES * 60 });
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
  const seconds = Math.floor((expiresAt - deps.desk.clock.now()) / 1_000);
  return new Reply(
    200,
    { session, expires_at: isoTime(expiresAt), account_id: account.id },
    fromOwnPage(request, deps.settings()) ? { "set-cookie": sessionCookie(session, seconds) } : {},
  );
}

async function endSession(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  if (who.kind === "key" || who.by !== "session") return sessionsOnly("sign out");
  await signOut(deps.accounts, who.session);
  const held = cookieSession(exchange.request) !== null;
  return new Reply(204, undefined, held ? { "set-cookie": noSessionCookie() } : {});
}

async function claim(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  if (who.kind !== "key") return keysOnly("claim its balance");
  const fields = await readFields(ClaimFields, exchange, deps);
  if (refused(fields)) return fields;
  if ((fields.email === undefined) === (fields.wallet === undefined)) {
    return invalidField("email", "Send either `email` or `wallet`.");
  }
  const { id } = who.balance;
  if (fields.wallet !== undefined) {
    const { wallet } = fields;
    const account = await againstForging(exchange, deps, () => claimByWallet(deps.accounts, id, wallet));
    return refused(account) ? account : claimed(account, id, true);
  }
  const address = emailOf(fields.email!);
  if (refused(address)) return address;
  const busy = await tooMany("claims and sign-in mails", "mails", MOST_MAILS, exchange, deps);
  if (busy !== null) return busy;
  const account = await claimByEmail(deps.accounts, id, address);
  return refused(account) ? account : claimed(account, id, false);
}

const claimed = (account: Account, balance: BalanceId, confirmed: boolean): Reply =>
  ok({ account_id: account.id, balance_id: balance, ...identityView(account), confirmed });

/** By what an account is known. */
export const identityView = ({ email, wallet }: Pick<Account, "email" | "wallet">) => ({
  ...(email === null ? {} : { email }),
  ...(wallet === null ? {} : { wallet }),
});

async function withdraw(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  if (who.kind === "key") return ownersOnly("withdraw a claim");
  if (who.by === "session") {
    return refuse(
      "invalid_request",
      "A session's balances already belong to its account. To decline a claim made for you, use DELETE /v1/me/claims/{id}.",
    );
  }
  const balance = await withdrawClaim(deps.accounts, who.balance.id);
  return refused(balance) ? balance : ok({ balance_id: balance, withdrawn: true });
}

async function settle(
  exchange: Exchange,
  deps: HttpDeps,
  word: "confirm" | "decline",
): Promise<Reply | Refusal> {
  const who = await identify(exchange, deps);
  if (refused(who)) return who;
  if (who.kind === "key" || who.by !== "session") return sessionsOnly(`${word} claims`);
  const { account } = who.holdings;
  const balance = await settleClaim(deps.accounts, account.id, (exchange.params.id ?? "") as BalanceId, word);
  return refused(balance)
    ? balance
    : ok({ account_id: account.id, balance_id: balance, confirmed: word === "confirm" });
}

const emailOf = (text: string): Email | Refusal =>
  readEmail(text) ??
  invalidField("email", "`email` must be an email address like name@example.com, with its domain in ASCII.");

async function tooMany(
  what: string,
  throttled: Throttled,
  limit: number,
  exchange: Exchange,
  deps: HttpDeps,
): Promise<Refusal | null> {
  const wait = await takeOfAll(deps.throttles[throttled], clientBlocks(exchange, deps), limit);
  return wait === null ? null : tooOften(`asked for ${limit} ${what}`, wait);
}
