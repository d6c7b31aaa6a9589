import { randomBase58 } from "./base58.ts";
import type { RandomBytes } from "./random.ts";

export type KeyId = `key_${string}`;
export type AccountId = `acct_${string}`;
export type BalanceId = `bal_${string}`;
export type BudgetId = `bud_${string}`;
export type ReceiptId = `rcpt_${string}`;

interface IdByPrefix {
  key: KeyId;
  acct: AccountId;
  bal: BalanceId;
  bud: BudgetId;
  rcpt: ReceiptId;
}

/** 22 base58 characters are 128 random bits: ids are unguessable and never collide. */
const ID_CHARACTERS = 22;

export function newId<P extends keyof IdByPrefix>(prefix: P, random: RandomBytes): IdByPrefix[P] {
  return `${prefix}_${randomBase58(ID_CHARACTERS, random)}` as IdByPrefix[P];
}
