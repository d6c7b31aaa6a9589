import { type Refusal, refuse, refused } from "../errors/refusal.ts";
import { suspension } from "../errors/suspension.ts";
import type { EpochMs } from "../units/clock.ts";
import type { AccountId, BalanceId } from "../units/id.ts";
import type { Account } from "./account.ts";
import type { AccountChange, ClaimedBalance } from "./account-store.ts";
import { CLAIM_DAYS, isPending } from "./claim-term.ts";
import type { AccountDesk } from "./desk.ts";
import type { Email } from "./email.ts";
import { claimMail } from "./mail.ts";
import { newLinkToken } from "./secret.ts";
import { LINK_MINUTES, linkOf, MOST_LINKS, newcomer } from "./sign-in.ts";
import { proveWallet, type SignedMessage, spentMessage } from "./wallet.ts";

/**
 * Offers an accountless balance to an email address, and mails a link that signs in and takes it over. The
 * holder of a key proves nothing about the address, so the account behind it is not touched until its owner
 * confirms: a stranger's claim neither shares their Open Tier allowance nor shows in the answer that there is
 * an account.
 */
export async function claimByEmail(
  desk: AccountDesk,
  balanceId: BalanceId,
  email: Email,
): Promise<Account | Refusal> {
  const now = desk.clock.now();
  const token = newLinkToken(desk.random);
  const link = linkOf(desk, token, email, balanceId);
  const change = await desk.store.change(
    { email, balance: balanceId },
    ({ balance, holdings, liveLinks }) => {
      const unclaimable = whyUnclaimable(balance, desk, now);
      if (unclaimable !== null) return unclaimable;
      const { account } = holdings ?? newcomer({ email, wallet: null }, desk, now);
      return {
        account,
        claim: { balanceId, accountId: account.id, at: now },
        ...(liveLinks < MOST_LINKS ? { link } : {}),
      };
    },
  );
  if (refused(change)) return change;
  if (change.link !== undefined) {
    const { dashboardUrl } = desk.links();
    desk.post(claimMail({ to: email, dashboardUrl, token, minutes: LINK_MINUTES, balance: balanceId }));
  }
  return change.account;
}

/** Takes an accountless balance into a wallet's account, at once: the signature is the owner's word. */
export async function claimByWallet(
  desk: AccountDesk,
  balanceId: BalanceId,
  signed: SignedMessage,
): Promise<Account | Refusal> {
  const now = desk.clock.now();
  const proved = await proveWallet(desk, signed);
  if (refused(proved)) return proved;
  const { hash, wallet } = proved;
  const about = { message: hash, wallet, balance: balanceId };
  const change = await desk.store.change(about, ({ message, balance, holdings }) => {
    if (message === null) return spentMessage();
    const unclaimable = whyUnclaimable(balance, desk, now);
    if (unclaimable !== null) return unclaimable;
    const { account } = holdings ?? newcomer({ email: null, wallet }, desk, now);
    if (account.suspended !== null) return suspension(account.suspended, desk.links().contact);
    return { account: { ...account, provedAt: account.provedAt ?? now }, attach: [balanceId] };
  });
  if (refused(change)) return change;
  desk.forgetBalance(balanceId);
  return change.account;
}

/** The owner's word on a claim of their address: takes the balance over, or ends the claim. */
export async function settleClaim(
  desk: AccountDesk,
  account: AccountId,
  balanceId: BalanceId,
  word: "confirm" | "decline",
): Promise<BalanceId | Refusal> {
  const now = desk.clock.now();
  const change = await desk.store.change(
    { account, balance: balanceId },
    ({ balance, holdings }): AccountChange | Refusal => {
      const claim = balance?.claim ?? null;
      if (holdings === null || claim === null || claim.accountId !== account || !isPending(claim, now)) {
        return refuse("invalid_request", "No claim on this balance is waiting for your confirmation.", {
          param: "id",
        });
      }
      if (word === "decline") return { decline: balanceId };
      const { suspended } = holdings.account;
      if (suspended !== null) return suspension(suspended, desk.links().contact);
      return { account: holdings.account, attach: [balanceId] };
    },
  );
  if (refused(change)) return change;
  desk.forgetBalance(balanceId);
  return balanceId;
}

/** For whoever set the balance up: the address was mistyped, or a key in wrong hands claimed it. */
export async function withdrawClaim(desk: AccountDesk, balanceId: BalanceId): Promise<BalanceId | Refusal> {
  const now = desk.clock.now();
  const change = await desk.store.change({ balance: balanceId }, ({ balance }): AccountChange | Refusal =>
    balance !== null && balance.claim !== null && isPending(balance.claim, now)
      ? { decline: balanceId }
      : refuse("invalid_request", "No claim on this balance is waiting for confirmation."),
  );
  return refused(change) ? change : balanceId;
}

function whyUnclaimable(balance: ClaimedBalance | null, desk: AccountDesk, now: EpochMs): Refusal | null {
  if (balance === null) return refuse("invalid_request", "There is no such balance.");
  if (balance.suspended !== null) return suspension(balance.suspended, desk.links().contact);
  if (balance.accountId !== null) {
    return refuse(
      "invalid_request",
      "This balance already belongs to an account and cannot be claimed again.",
    );
  }
  return balance.claim !== null && isPending(balance.claim, now)
    ? refuse(
        "invalid_request",
        `This balance is already claimed, and the owner of the address has yet to confirm. Without confirmation, the claim ends after ${CLAIM_DAYS} days.`,
      )
    : null;
}
