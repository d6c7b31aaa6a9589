import type { EpochMs } from "../units/clock.ts";
import type { BalanceId } from "../units/id.ts";
import { type NanoUsd, ZERO_USD } from "../units/usd.ts";

/** An entry of a balance's credit, on the books for good: more than zero was given, less was taken back. */
export interface Credit {
  readonly balanceId: BalanceId;
  readonly amount: NanoUsd;
  readonly idempotencyKey: string;
  readonly note: string | null;
  readonly at: EpochMs;
  /** It took back all there was, whatever that came to. */
  readonly tookAll?: boolean;
}

/** Credit that is to be taken back: an amount of more than zero, what of it is available, or all that is. */
export interface Debit extends Omit<Credit, "amount" | "tookAll"> {
  readonly amount: NanoUsd | "all" | { readonly upTo: NanoUsd };
}

/** Why nothing was taken back: no more than this is neither spent nor held. */
export interface TooMuch {
  readonly available: NanoUsd;
}

/** Entries of credit, which are durable when they are answered. */
export interface CreditBooks {
  /**
   * Credits a balance, once for each idempotency key. Resolves with what was credited under the key, now or before; null
   * when the balance would have been credited with more in all than is counted exactly.
   */
  credit(credit: Credit): Promise<Credit | null>;
  /**
   * Takes credit back, once for each idempotency key. Resolves with what was done under the key, now or before; or with
   * what is available, where that is less, and then nothing was taken.
   */
  debit(debit: Debit): Promise<Credit | TooMuch>;
  /** Newest first; what was taken back has an amount below zero. */
  credits(balance: BalanceId, limit: number): Promise<readonly Credit[]>;
}

/**
 * What a debit takes of what is available; null where it cannot be made. One up to an amount always is, also of nothing:
 * else a repeat would take what was credited since, and nobody would know.
 */
export function taken(wanted: Debit["amount"], available: number): NanoUsd | null {
  if (typeof wanted === "object") return Math.max(0, Math.min(wanted.upTo, available)) as NanoUsd;
  const amount = wanted === "all" ? available : wanted;
  return amount > 0 && amount <= available ? (amount as NanoUsd) : null;
}

/** What a debit has taken, by its entry. */
export const tookBack = (done: Credit | TooMuch): NanoUsd =>
  "available" in done ? ZERO_USD : ((0 - done.amount) as NanoUsd);

/** The entry that a debit becomes. */
export const debitEntry = (debit: Debit, amount: NanoUsd): Credit => ({
  ...debit,
  amount: (0 - amount) as NanoUsd,
  tookAll: debit.amount === "all",
});
