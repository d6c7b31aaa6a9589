import { type Refusal, refused } from "../../units/errors/refusal.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import type { AccountChange, BalanceRecord } from "./account-store.ts";
import type { AccountDeps } from "./deps.ts";

/** Who asks: a session of the balance's account, or the recovery secret itself. */
export type SecretOwner =
  | { readonly balance: BalanceId; readonly account: AccountId }
  | { readonly recovery: SecretHash };

/**
 * Gives a balance another recovery secret; the old one ends at once. Only for undoing the claim by which the
 * account got the balance, the secret from before keeps its place: a thief who claimed a balance must not
 * shut its owner out by a new secret. Null where the caller no longer has anything of the balance.
 */
export async function replaceRecovery(
  deps: AccountDeps,
  owner: SecretOwner,
  hash: SecretHash,
): Promise<BalanceId | Refusal | null> {
  const change = await deps.store.change(
    owner,
    ({ balance }): AccountChange =>
      balance === null || !mayReplace(balance, owner)
        ? {}
        : { recovery: { balance: balance.id, hash, undo: undoOf(balance, owner) } },
  );
  return refused(change) ? change : (change.recovery?.balance ?? null);
}

const mayReplace = (balance: BalanceRecord, owner: SecretOwner): boolean =>
  "recovery" in owner ? balance.recovery === owner.recovery : balance.owner?.account.id === owner.account;

function undoOf({ recovery, undo, claimedAt }: BalanceRecord, owner: SecretOwner): SecretHash | null {
  // Who has the secret itself replaces it for everything.
  if ("recovery" in owner) return undo === recovery ? null : undo;
  return claimedAt === null ? null : undo;
}
