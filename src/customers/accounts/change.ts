import type { EpochMs } from "../../units/clock.ts";
import { type Refusal, refused } from "../../units/errors/refusal.ts";
import type { AccountChange, AccountQuery, AccountState, WrittenChange } from "./account-store.ts";
import type { AccountDeps } from "./deps.ts";

/**
 * Decides a change and has it written; `now` is when it was asked for. Once it is durable that a balance
 * belongs to somebody else than before, or that a key has ended, this process forgets what it remembers of it.
 */
export async function changeAccounts<C extends AccountChange>(
  deps: AccountDeps,
  about: AccountQuery,
  decide: (state: AccountState, now: EpochMs) => C | Refusal,
): Promise<WrittenChange<C> | Refusal> {
  const now = deps.clock.now();
  const change = await deps.store.change(about, (state) => decide(state, now));
  if (refused(change)) return change;
  const { attach = [], reclaim = [], close = [], decline, endedKeys }: WrittenChange<AccountChange> = change;
  const balances = [...attach, ...reclaim, ...close, ...(decline === undefined ? [] : [decline])];
  deps.keyring.forget(
    endedKeys.map((hash) => ({ hash })),
    balances,
  );
  return change;
}
