import type { EpochMs } from "../../units/clock.ts";
import { invalidField, type Refusal, refused } from "../../units/errors/refusal.ts";
import { type BalanceId, newId } from "../../units/id.ts";
import { hashSecret } from "../../units/secret-hash.ts";
import type { Account, AccountBalances } from "./account.ts";
import type { AccountChange, AccountQuery, AccountState, Link } from "./account-store.ts";
import { changeAccounts } from "./change.ts";
import type { AccountDeps } from "./deps.ts";
import type { Email } from "./email.ts";
import { signInMail } from "./mail.ts";
import { isPending } from "./ownership.ts";
import { newLinkToken, newSession } from "./secret.ts";
import { SESSION_MS } from "./session.ts";
import { proveWallet, spentMessage } from "./wallet.ts";
import type { SignedMessage } from "./wallet-message.ts";

/**
 * Mails a link that signs in. Nothing here checks whether the address has an account, so neither the answer
 * nor its timing can reveal that. While five unused links are out for a mailbox, no more are sent: flooding a
 * mailbox leaves its owner with links that work. When strangers have had too many mails sent, only who has signed
 * in before gets one: then the caller must not wait, because that takes longer.
 */
export async function requestLink(
  deps: AccountDeps,
  email: Email,
  whom: "anybody" | "accounts" = "anybody",
): Promise<void> {
  const token = newLinkToken(deps.random);
  const link = linkOf(deps, token, email, null);
  const change = await deps.store.change(
    whom === "anybody" ? { mailbox: email } : { email, mailbox: email },
    ({ liveLinks, accountBalances }): AccountChange => {
      const mayHaveLink = whom === "anybody" || (accountBalances?.account.provedAt ?? null) !== null;
      return mayHaveLink && liveLinks.signIn < MAX_LINKS ? { link } : {};
    },
  );
  if (refused(change) || change.link === undefined) return;
  deps.mailer.post(
    signInMail({ to: email, dashboardUrl: deps.links().dashboardUrl, token, minutes: LINK_MINUTES }),
  );
}

export const LINK_MINUTES = 15;
const MAX_LINKS = 5;

export const linkOf = (deps: AccountDeps, token: string, email: Email, claimed: BalanceId | null): Link => ({
  hash: hashSecret(token),
  email,
  claimed,
  expiresAt: (deps.clock.now() + LINK_MINUTES * 60_000) as EpochMs,
});

export interface SignedIn {
  readonly account: Account;
  /** Shown this once. */
  readonly session: string;
  readonly expiresAt: EpochMs;
}

/** Whom a link would sign in, and which claim it would confirm; uses nothing up. */
export async function readLink(deps: AccountDeps, token: string): Promise<Link | Refusal> {
  const now = deps.clock.now();
  const link = await deps.store.link(hashSecret(token));
  if (link === null || link.expiresAt <= now) return spentLink();
  const known = await deps.store.accountBalances({ email: link.email });
  const [claimed = null] = known === null ? [] : confirmedBy(link, known, now);
  return { ...link, claimed };
}

/** Uses up a mailed link, and takes over the balance whose claim it was mailed for. */
export function signInByLink(deps: AccountDeps, token: string): Promise<SignedIn | Refusal> {
  return enter(deps, { link: hashSecret(token) }, ({ link, accountBalances }, now) => {
    if (link === null || link.expiresAt <= now) return spentLink();
    const known = accountBalances ?? newcomer({ email: link.email, wallet: null }, deps, now);
    return { known, attach: confirmedBy(link, known, now) };
  });
}

export async function signInByWallet(deps: AccountDeps, signed: SignedMessage): Promise<SignedIn | Refusal> {
  const proved = await proveWallet(deps, signed);
  if (refused(proved)) return proved;
  const { hash, wallet } = proved;
  return enter(deps, { message: hash, wallet }, ({ message, accountBalances }, now) => {
    // Somebody else was faster and used it.
    if (message === null) return spentMessage();
    return { known: accountBalances ?? newcomer({ email: null, wallet }, deps, now), attach: [] };
  });
}

/**
 * What a link takes over: the balance whose claim it was mailed for, if that still waits. An ordinary link
 * stands for the address alone and takes nothing over, because anybody can claim a balance of theirs for
 * anybody's address: decision 8.
 */
function confirmedBy(
  { claimed }: Link,
  { account, claims }: AccountBalances,
  now: EpochMs,
): readonly BalanceId[] {
  const waits = claims.some((claim) => claim.balanceId === claimed && isPending(claim, now));
  return claimed !== null && waits && account.suspended === null ? [claimed] : [];
}

interface SignInTarget {
  readonly known: AccountBalances;
  readonly attach: readonly BalanceId[];
}

async function enter(
  deps: AccountDeps,
  about: AccountQuery,
  prove: (state: AccountState, now: EpochMs) => SignInTarget | Refusal,
): Promise<SignedIn | Refusal> {
  const session = newSession(deps.random);
  const own = ownBalance(deps);
  const change = await changeAccounts(deps, about, (state, now) => {
    const opened = prove(state, now);
    if (refused(opened)) return opened;
    const { known, attach } = opened;
    return {
      account: { ...known.account, provedAt: known.account.provedAt ?? now },
      ...(known.balances.length === 0 ? { balance: own } : {}),
      attach,
      session: { hash: hashSecret(session), expiresAt: (now + SESSION_MS) as EpochMs },
    };
  });
  if (refused(change)) return change;
  return { account: change.account, session, expiresAt: change.session.expiresAt };
}

/**
 * The first sign-in makes a balance that is the account's own, before anything is attached: it is what a
 * session acts on where none is named, and nobody else has a secret of it.
 */
export const ownBalance = ({ random, clock }: AccountDeps) => ({
  id: newId("bal", random),
  createdAt: clock.now(),
});

/** The account of somebody who signs in for the first time. */
export const newcomer = (
  who: Pick<Account, "email" | "wallet">,
  { random }: AccountDeps,
  now: EpochMs,
): AccountBalances => ({
  account: {
    id: newId("acct", random),
    ...who,
    suspended: null,
    createdAt: now,
    deletedAt: null,
    provedAt: null,
  },
  balances: [],
  claimed: [],
  claims: [],
});

const spentLink = (): Refusal =>
  invalidField(
    "token",
    "The link is unknown, already used, or expired. Ask for a new one with POST /v1/auth/email.",
  );
