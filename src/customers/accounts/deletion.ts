import { type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import { suspension } from "../../units/errors/suspension-refusal.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import type { AccountChange } from "./account-store.ts";
import { changeAccounts } from "./change.ts";
import type { AccountDeps } from "./deps.ts";
import { ownership, undoEnds } from "./ownership.ts";

/** What an end has come to. */
export interface DeletedBalances {
  /** Their keys are revoked; the books keep their ids and amounts. */
  readonly closed: readonly BalanceId[];
  /** Their claims could still be undone: they are again whose recovery secret opens them. */
  readonly detached: readonly BalanceId[];
}

/**
 * Deletes an account: its addresses and sessions are erased, and the keys of its balances end. What it claimed
 * less than a week ago is not its own to end, so that goes back to the one who set it up.
 */
export async function deleteAccount(
  deps: AccountDeps,
  account: AccountId,
): Promise<DeletedBalances | Refusal> {
  const change = await changeAccounts(
    deps,
    { account },
    ({ accountBalances }, now): Required<DeletionChange> | Refusal => {
      if (accountBalances === null) return refuse("invalid_request", "There is no such account.");
      const { account, balances, claimed } = accountBalances;
      if (account.suspended !== null) return suspension(account.suspended, deps.links().contact);
      const reclaim = claimed.filter(({ at }) => now < undoEnds(at)).map(({ id }) => id);
      return { account, reclaim, close: balances.filter((id) => !reclaim.includes(id)), erase: true };
    },
  );
  return refused(change) ? change : { closed: change.close, detached: change.reclaim };
}

/**
 * Ends a balance without an account: its recovery secret and its keys. A claim that waits ends with it. Null where the
 * secret opens nothing any more: one that an account issued must not close what was taken back from it meanwhile.
 */
export async function closeBalance(
  deps: AccountDeps,
  recovery: SecretHash,
): Promise<DeletedBalances | Refusal | null> {
  const change = await changeAccounts(deps, { recovery }, ({ balance }, now): AccountChange | Refusal => {
    if (balance === null || balance.recovery !== recovery) return {};
    const { id } = balance;
    if (balance.suspended !== null) return suspension(balance.suspended, deps.links().contact);
    const { state } = ownership(balance, now);
    if (state === "nobody's" || state === "reclaimed") return { close: [id] };
    if (state === "offered") return { decline: id, close: [id] };
    return refuse(
      "invalid_request",
      state === "claimed"
        ? "The balance was claimed for an account. Undo the claim first with DELETE /v1/me/claim, or delete the account with a session of it."
        : "The balance belongs to an account, which only a session of it can delete.",
    );
  });
  if (refused(change)) return change;
  return change.close === undefined ? null : { closed: change.close, detached: [] };
}

type DeletionChange = Pick<AccountChange, "account" | "reclaim" | "close" | "erase">;
