import type { EpochMs } from "../../units/clock.ts";
import { invalidField, type Refusal, refuse, refused, retryAfter } from "../../units/errors/refusal.ts";
import { suspension } from "../../units/errors/suspension-refusal.ts";
import type { AccountId, BalanceId, KeyId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import type { Account } from "./account.ts";
import type { AccountChange, BalanceRecord } from "./account-store.ts";
import { changeAccounts } from "./change.ts";
import type { AccountDeps } from "./deps.ts";
import type { Email } from "./email.ts";
import { claimMail } from "./mail.ts";
import { CLAIM_DAYS, ownership } from "./ownership.ts";
import { newLinkToken } from "./secret.ts";
import { LINK_MINUTES, linkOf, newcomer, ownBalance } from "./sign-in.ts";
import { proveWallet, spentMessage } from "./wallet.ts";
import type { SignedMessage } from "./wallet-message.ts";

/** Who claims with a key of the balance. */
export interface Claimant {
  readonly balance: BalanceId;
  /** The recovery secret that they sent next to the key; null for none. */
  readonly secret: SecretHash | null;
}

/**
 * Why a key alone may not claim its balance; null where it may. A key that an owner made was made for somebody to
 * spend within its limits: if it could claim, its holder would have the whole balance.
 */
export const whyNoClaimant = (rotationId: KeyId, setUpKey: KeyId | null): Refusal | null =>
  rotationId === setUpKey
    ? null
    : refuse(
        "invalid_request",
        "This key was made by the owner of the balance, and such a key cannot claim it. Only the key made at set-up, or one that it was rotated to, can; or any key together with `recovery_secret`.",
      );

/**
 * Offers an accountless balance to an email address, and mails a link that signs in and takes it over. The
 * holder of a key proves nothing about the address, so the account behind it is not touched until its owner
 * confirms: a stranger's claim neither shares their Open Tier allowance nor shows in the answer that there is
 * an account.
 *
 * No claim is without its mail, which warns of it; so the mails of claims are counted apart from sign-in
 * mails, and where there are too many of them, the claim is refused.
 */
export async function claimByEmail(
  deps: AccountDeps,
  claimant: Claimant,
  email: Email,
): Promise<Account | Refusal> {
  const balanceId = claimant.balance;
  const token = newLinkToken(deps.random);
  const link = linkOf(deps, token, email, balanceId);
  const change = await changeAccounts(
    deps,
    { email, balance: balanceId },
    ({ balance, accountBalances, liveLinks }, now) => {
      const unclaimable = whyUnclaimable(balance, claimant, deps, now);
      if (unclaimable !== null) return unclaimable;
      if (liveLinks.claim >= MAX_CLAIM_LINKS) return tooManyClaims();
      const { account } = accountBalances ?? newcomer({ email, wallet: null }, deps, now);
      return { account, claim: { balanceId, accountId: account.id, at: now }, link };
    },
  );
  if (refused(change)) return change;
  const { dashboardUrl } = deps.links();
  deps.mailer.post(claimMail({ to: email, dashboardUrl, token, minutes: LINK_MINUTES, balance: balanceId }));
  return change.account;
}

/** On their way to a mailbox. */
const MAX_CLAIM_LINKS = 20;

/** Takes an accountless balance into a wallet's account, at once: the signature is the owner's word. */
export async function claimByWallet(
  deps: AccountDeps,
  claimant: Claimant,
  signed: SignedMessage,
): Promise<Account | Refusal> {
  const proved = await proveWallet(deps, signed);
  if (refused(proved)) return proved;
  const { hash, wallet } = proved;
  const own = ownBalance(deps);
  const about = { message: hash, wallet, balance: claimant.balance };
  const change = await changeAccounts(deps, about, ({ message, balance, accountBalances }, now) => {
    if (message === null) return spentMessage();
    const unclaimable = whyUnclaimable(balance, claimant, deps, now);
    if (unclaimable !== null) return unclaimable;
    const { account, balances } = accountBalances ?? newcomer({ email: null, wallet }, deps, now);
    if (account.suspended !== null) return suspension(account.suspended, deps.links().contact);
    return {
      account: { ...account, provedAt: account.provedAt ?? now },
      ...(balances.length === 0 ? { balance: own } : {}),
      attach: [claimant.balance],
    };
  });
  return refused(change) ? change : change.account;
}

/**
 * The owner's word on a claim of their address: takes the balance over, or ends the claim. Who confirms again
 * what was confirmed has missed the answer.
 */
export async function settleClaim(
  deps: AccountDeps,
  account: AccountId,
  balanceId: BalanceId,
  word: "confirm" | "decline",
): Promise<BalanceId | Refusal> {
  const change = await changeAccounts(
    deps,
    { account, balance: balanceId },
    ({ balance, accountBalances }, now): AccountChange | Refusal => {
      if (accountBalances === null || balance === null) return noClaim("id");
      const at = ownership(balance, now);
      if (word === "confirm" && at.state === "claimed" && at.account === account) return {};
      if (at.state !== "offered" || at.claim.accountId !== account) return noClaim("id");
      if (word === "decline") return { decline: balanceId };
      const { suspended } = accountBalances.account;
      if (suspended !== null) return suspension(suspended, deps.links().contact);
      return { account: accountBalances.account, attach: [balanceId] };
    },
  );
  return refused(change) ? change : balanceId;
}

const noClaim = (param: string): Refusal =>
  invalidField(param, "No claim on this balance is waiting for your confirmation.");

function whyUnclaimable(
  balance: BalanceRecord | null,
  { secret }: Claimant,
  deps: AccountDeps,
  now: EpochMs,
): Refusal | null {
  if (balance === null) return refuse("invalid_request", "There is no such balance.");
  if (balance.suspended !== null) return suspension(balance.suspended, deps.links().contact);
  switch (ownership(balance, now).state) {
    case "nobody's":
      return secret === null || secret === balance.recovery ? null : otherSecret();
    case "reclaimed":
      if (secret === null) return takesSecret();
      return secret === balance.recovery ? null : otherSecret();
    case "offered":
      return refuse(
        "invalid_request",
        `This balance is already claimed, and the owner of the address has yet to confirm. Without confirmation, the claim ends after ${CLAIM_DAYS} days.`,
      );
    default:
      return refuse(
        "invalid_request",
        "This balance already belongs to an account and cannot be claimed again.",
      );
  }
}

const takesSecret = (): Refusal =>
  invalidField(
    "recovery_secret",
    "A claim of this balance was taken back, so a key alone cannot claim it again. Send its recovery secret as `recovery_secret`, too.",
  );

const otherSecret = (): Refusal =>
  invalidField("recovery_secret", "`recovery_secret` must be the recovery secret of this balance.");

const tooManyClaims = (): Refusal =>
  refuse(
    "rate_limited",
    `${MAX_CLAIM_LINKS} claims for this address were mailed within ${LINK_MINUTES} minutes, which is the limit. Retry in ${LINK_MINUTES} minutes.`,
    retryAfter(LINK_MINUTES * 60),
  );
