import type { SuspensionReason } from "../../errors/suspension.ts";
import type { Balance, Key } from "../../keys/key.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { AccountId, BalanceId, KeyId } from "../../units/id.ts";
import type { NanoUsd } from "../../units/usd.ts";
import type { RowRead, Whole } from "./statement.ts";

/** A row of `keys`. */
export type KeyRow = RowRead<ReturnType<typeof rowOf>>;

export const keyFromRow = (row: KeyRow): Key => ({
  id: row.id,
  hash: row.hash,
  prefix: row.prefix,
  name: row.name,
  balanceId: row.balance_id,
  rotationId: row.lineage,
  madeBy: row.made_by,
  state: row.state,
  createdAt: Number(row.created_at) as EpochMs,
  expiresAt: number(row.expires_at) as EpochMs | null,
  rpmLimit: number(row.rpm_limit),
  tpmLimit: number(row.tpm_limit),
  dailyLimit: number(row.daily_limit) as NanoUsd | null,
  monthlyLimit: number(row.monthly_limit) as NanoUsd | null,
  allowedModels: row.allowed_models === null ? null : JSON.parse(row.allowed_models),
  budgets: JSON.parse(row.budgets),
});

/** The key as a row of its table. */
export const rowOf = (key: Key) => ({
  id: key.id,
  hash: key.hash,
  prefix: key.prefix,
  balance_id: key.balanceId,
  lineage: key.rotationId,
  made_by: key.madeBy,
  created_at: key.createdAt,
  ...changeable(key),
});

/** Columns that a key's life changes; lists are JSON. */
export const changeable = (key: Key) => ({
  name: key.name,
  state: key.state,
  expires_at: key.expiresAt,
  rpm_limit: key.rpmLimit,
  tpm_limit: key.tpmLimit,
  daily_limit: key.dailyLimit,
  monthly_limit: key.monthlyLimit,
  allowed_models: key.allowedModels === null ? null : JSON.stringify(key.allowedModels),
  budgets: JSON.stringify(key.budgets),
});

/** A row of `balances`, suspended with its account. */
export interface BalanceRow {
  readonly id: BalanceId;
  readonly account_id: AccountId | null;
  readonly suspended: SuspensionReason | null;
  readonly created_at: Whole;
  readonly setup_key: KeyId | null;
  readonly secrets_saved_at: Whole | null;
  readonly closed_at: Whole | null;
}

export const balanceFromRow = (row: BalanceRow): Balance => ({
  id: row.id,
  accountId: row.account_id,
  suspended: row.suspended,
  createdAt: Number(row.created_at) as EpochMs,
  setUpKey: row.setup_key,
  secretsSavedAt: number(row.secrets_saved_at) as EpochMs | null,
  closed: row.closed_at !== null,
});

const number = (whole: number | string | null): number | null => (whole === null ? null : Number(whole));
