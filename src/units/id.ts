import { base58, randomBase58 } from "./base58.ts";
import type { EpochMs } from "./clock.ts";
import type { RandomBytes } from "./random.ts";

export type KeyId = `key_${string}`;
export type AccountId = `acct_${string}`;
export type BalanceId = `bal_${string}`;
export type BudgetId = `bud_${string}`;
export type PaymentId = `pay_${string}`;
type WebhookId = `wh_${string}`;
export type ReceiptId = `rcpt_${string}`;

interface IdByPrefix {
  key: KeyId;
  acct: AccountId;
  bal: BalanceId;
  bud: BudgetId;
  pay: PaymentId;
  wh: WebhookId;
}

/** 22 base58 characters are 128 random bits, 14 are 82: ids are unguessable and never collide. */
const ID_CHARACTERS = 22;

export function newId<P extends keyof IdByPrefix>(prefix: P, random: RandomBytes): IdByPrefix[P] {
  return `${prefix}_${randomBase58(ID_CHARACTERS, random)}` as IdByPrefix[P];
}

/**
 * A receipt's: its first characters tell the millisecond, and the rest is random. Rows that are written one
 * after another then stand next to each other in their index; wholly random ids dirtied a page of it for
 * almost every request.
 */
export function newReceiptId(at: EpochMs, random: RandomBytes): ReceiptId {
  return `rcpt_${base58(at, TIME_CHARACTERS)}${randomBase58(ID_CHARACTERS - TIME_CHARACTERS, random)}`;
}

/** Whether the request began after `at`; of what is no receipt's id, anything. */
export const isLaterThan = (at: EpochMs, id: ReceiptId): boolean =>
  id > `rcpt_${base58(at, TIME_CHARACTERS)}`;

/** Where the receipts of requests that began from `at` on begin, in the order of ids. */
export const firstReceiptId = (at: EpochMs): ReceiptId =>
  `rcpt_${base58(Math.max(0, at), TIME_CHARACTERS)}` as ReceiptId;

/** Milliseconds until the year 6000. */
const TIME_CHARACTERS = 8;
