import { type Refusal, refused } from "../errors/refusal.ts";
import type { EpochMs } from "../units/clock.ts";
import type { AccountChange, AccountState, Question } from "./account-store.ts";
import type { AccountDesk } from "./desk.ts";

/**
 * Decides a change and has it written; `now` is when it was asked for. Once it is durable that a balance
 * belongs to somebody else than before, what is remembered of it is forgotten.
 */
export async function changeAccounts<C extends AccountChange>(
  desk: AccountDesk,
  about: Question,
  decide: (state: AccountState, now: EpochMs) => C | Refusal,
): Promise<C | Refusal> {
  const now = desk.clock.now();
  const change = await desk.store.change(about, (state) => decide(state, now));
  if (refused(change)) return change;
  const { attach = [], detach = [], close = [], decline }: AccountChange = change;
  for (const id of [...attach, ...detach, ...close]) desk.forgetBalance(id);
  if (decline !== undefined) desk.forgetBalance(decline);
  return change;
}
