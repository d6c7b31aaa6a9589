import { invalidField, type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import { suspension } from "../../units/errors/suspension-refusal.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import type { AccountChange, BalanceRecord } from "./account-store.ts";
import { changeAccounts } from "./change.ts";
import type { AccountDeps } from "./deps.ts";
import { ownership, UNDO_DAYS } from "./ownership.ts";
import { ownBalance } from "./sign-in.ts";

/**
 * For the person who set the balance up, with the recovery secret from then: the address was mistyped, or a key in
 * the wrong hands claimed it. Ends a claim that waits, and takes a claimed balance back from its account,
 * even where that has replaced the recovery secret since. Null for a secret that opens nothing.
 */
export async function takeBack(
  deps: AccountDeps,
  secret: SecretHash,
  revokeKeys: boolean,
): Promise<BalanceId | Refusal | null> {
  const own = ownBalance(deps);
  const change = await changeAccounts(
    deps,
    { recovery: secret },
    ({ balance }, now): AccountChange | Refusal => {
      if (balance === null) return {};
      const at = ownership(balance, now);
      if (at.state === "offered") return { reclaim: [balance.id], revokeKeys };
      if (at.state === "claimed" && balance.undo === secret) {
        // Otherwise it would be the way out of a suspension.
        const suspended = balance.suspended ?? balance.owner!.account.suspended;
        return suspended === null
          ? left(balance, own, revokeKeys)
          : suspension(suspended, deps.links().contact);
      }
      // It is an old one, and its time is over.
      if (balance.recovery !== secret) return {};
      return nothingToUndo(balance.owner === null);
    },
  );
  return refused(change) ? change : (change.reclaim?.[0] ?? null);
}

/** The operator's word, at any time: a balance that an account claimed, or that was claimed for it, is free. */
export async function detach(
  deps: AccountDeps,
  account: AccountId,
  balanceId: BalanceId,
  revokeKeys: boolean,
): Promise<BalanceId | Refusal> {
  const own = ownBalance(deps);
  const change = await changeAccounts(
    deps,
    { balance: balanceId },
    ({ balance }, now): AccountChange | Refusal => {
      const at = balance === null ? null : ownership(balance, now);
      if (balance !== null && at?.state === "offered" && at.claim.accountId === account) {
        return { reclaim: [balanceId], revokeKeys };
      }
      if (balance === null || balance.owner?.account.id !== account) {
        return invalidField(
          "balance_id",
          "`balance_id` must name a balance of this account, or one claimed for it.",
        );
      }
      return balance.claimedAt === null ? neverClaimed() : left(balance, own, revokeKeys);
    },
  );
  return refused(change) ? change : balanceId;
}

/** An account that somebody signed in to is never without a balance. */
function left(
  { id, owner }: BalanceRecord,
  own: NonNullable<AccountChange["balance"]>,
  revokeKeys: boolean,
): AccountChange {
  const { account, balances } = owner!;
  return { account, reclaim: [id], revokeKeys, ...(balances.length === 1 ? { balance: own } : {}) };
}

const nothingToUndo = (unclaimed: boolean): Refusal =>
  refuse(
    "invalid_request",
    unclaimed
      ? `No claim on this balance is waiting for confirmation, and none took effect within the last ${UNDO_DAYS} days.`
      : `The balance belongs to its account: a claim can be undone for ${UNDO_DAYS} days, with the recovery secret from before it. The operator can still detach the balance.`,
  );

const neverClaimed = (): Refusal =>
  invalidField(
    "balance_id",
    "This balance was made by the account's first sign-in and never claimed, so nobody else could open it.",
  );
