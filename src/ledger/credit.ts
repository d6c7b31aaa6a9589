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
  /** Part of what it took back that requests still held: a claim, which is open until they end. */
  readonly claimed?: NanoUsd;
}

/**
 * Credit that is to be taken back: an amount of more than zero, all that is available, or what of an amount is not
 * spent. The last one also takes what open requests hold.
 */
export interface Debit extends Omit<Credit, "amount" | "tookAll" | "claimed"> {
  readonly amount: NanoUsd | "all" | { readonly upTo: NanoUsd };
}

/** Credit that was taken back while requests held it. They may still spend it. */
export interface CreditClaim {
  readonly idempotencyKey: string;
  readonly balanceId: BalanceId;
  readonly claimed: NanoUsd;
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
   * what is available, where that is less, and then nothing was taken. Once it resolves, nothing is admitted until open
   * requests hold no more than what is left.
   */
  debit(debit: Debit): Promise<Credit | TooMuch>;
  /** Newest first; what was taken back has an amount below zero. */
  credits(balance: BalanceId, limit: number): Promise<readonly Credit[]>;
}

/**
 * What a debit takes; null where it cannot be made. One up to an amount takes everything that is not spent, also what
 * requests hold, and is always made, also of nothing: else a repeat would take what was credited since, and nobody would
 * know.
 */
export function taken(requested: Debit["amount"], { available, unspent }: Takeable): TakenCredit | null {
  if (typeof requested === "object") {
    const amount = Math.max(0, Math.min(requested.upTo, unspent));
    const claimed = Math.max(0, amount - Math.max(0, available));
    return { amount: amount as NanoUsd, claimed: claimed as NanoUsd };
  }
  const amount = requested === "all" ? available : requested;
  return amount > 0 && amount <= available ? { amount: amount as NanoUsd, claimed: ZERO_USD } : null;
}

/** What a balance can give; `available` is below zero while open requests hold more than what is left. */
export interface Takeable {
  readonly available: number;
  readonly unspent: number;
}

export interface TakenCredit {
  readonly amount: NanoUsd;
  readonly claimed: NanoUsd;
}

/**
 * What is lost of a claim, by what its balance is short of; null while open requests may still give that back or spend
 * it.
 */
export function lostOf({ claimed }: CreditClaim, { short, held }: Shortage): NanoUsd | null {
  if (short <= 0) return ZERO_USD;
  return held > 0 ? null : (Math.min(short, claimed) as NanoUsd);
}

/** How much more than its credit a balance has spent and holds; and how much of that is only held. */
export interface Shortage {
  readonly short: number;
  readonly held: number;
}

/** What a claim has lost was never taken back: it is credited again under this key. */
export const lossKey = (claim: string): string => `${claim}:lost`;

/** What a debit has taken, by its entry. */
export const tookBack = (done: Credit | TooMuch): NanoUsd =>
  "available" in done ? ZERO_USD : ((0 - done.amount) as NanoUsd);

/** The entry that a debit becomes. */
export const debitEntry = (debit: Debit, { amount, claimed }: TakenCredit): Credit => ({
  ...debit,
  amount: (0 - amount) as NanoUsd,
  tookAll: debit.amount === "all",
  claimed,
});
