import { type Refusal, refused } from "../errors/refusal.ts";
import type { EpochMs } from "../units/clock.ts";
import type { AccountChange, AccountQuery, AccountState } from "./account-store.ts";
import type { AccountDeps } from "./deps.ts";

/**
 * Decides a change and has it written; `now` is when it was asked for. Once it is durable that a balance
 * belongs to somebody else than before, what is remembered of it is forgotten.
 */
export async function changeAccounts<C extends AccountChange>(
  deps: AccountDeps,
  about: AccountQuery,
  decide: (state: AccountState, now: EpochMs) => C | Refusal,
): Promise<C | Refusal> {
  const now = deps.clock.now();
  const change = await deps.store.change(about, (state) => decide(state, now));
  if (refused(change)) return change;
  const { attach = [], detach = [], close = [], decline }: AccountChange = change;
  for (const id of [...attach, ...detach, ...close]) deps.forgetBalance(id);
  if (decline !== undefined) deps.forgetBalance(decline);
  return change;
}
