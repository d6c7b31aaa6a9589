import type { EpochMs } from "../units/clock.ts";
import type { BalanceId } from "../units/id.ts";
import { type NanoUsd, ZERO_USD } from "../units/usd.ts";

/** A booked entry of a balance's credit: above zero it was added, below zero taken back. */
export interface Credit {
  readonly balanceId: BalanceId;
  readonly amount: NanoUsd;
  readonly idempotencyKey: string;
  readonly note: string | null;
  readonly at: EpochMs;
  /** It took back everything available. */
  readonly tookAll?: boolean;
  /** The part that requests still held: a claim, which is open until they end. */
  readonly claimed?: NanoUsd;
}

/**
 * Credit to take back: an amount above zero, everything available, or the unspent part of an amount. Only the last one also
 * takes what open requests hold.
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

/** Nothing was taken back, because only this is neither spent nor held. */
export interface TooMuch {
  readonly available: NanoUsd;
}

/** Entries of credit, durable once a call resolves. */
export interface CreditBooks {
  /**
   * Credits a balance, once for each idempotency key. Resolves with the key's entry, new or earlier; null if the balance's sum
   * of credits would no longer be an exact integer.
   */
  credit(credit: Credit): Promise<Credit | null>;
  /**
   * Takes credit back, once for each idempotency key. Resolves with the key's entry, new or earlier; or takes nothing and
   * resolves with what is available. Afterwards nothing is admitted until open requests hold no more than what is left.
   */
  debit(debit: Debit): Promise<Credit | TooMuch>;
  /** Newest first. */
  credits(balance: BalanceId, limit: number): Promise<readonly Credit[]>;
}

/**
 * What a debit takes; null if it cannot be made. A debit of the unspent part of an amount is always made, even of nothing:
 * otherwise a repeat would silently take what was credited since.
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

/** What is lost of a claim, given its balance's shortage; null while open requests may still release or spend it. */
export function lostOf({ claimed }: CreditClaim, { short, held }: Shortage): NanoUsd | null {
  if (short <= 0) return ZERO_USD;
  return held > 0 ? null : (Math.min(short, claimed) as NanoUsd);
}

/** By how much spending and holds exceed a balance's credit, and how much is held. */
export interface Shortage {
  readonly short: number;
  readonly held: number;
}

/** The lost part of a claim is credited again under this key, because it could not be taken back. */
export const lossKey = (claim: string): string => `${claim}:lost`;

/** What the entry of a debit took. */
export const tookBack = (done: Credit | TooMuch): NanoUsd =>
  "available" in done ? ZERO_USD : ((0 - done.amount) as NanoUsd);

export const debitEntry = (debit: Debit, { amount, claimed }: TakenCredit): Credit => ({
  ...debit,
  amount: (0 - amount) as NanoUsd,
  tookAll: debit.amount === "all",
  claimed,
});
