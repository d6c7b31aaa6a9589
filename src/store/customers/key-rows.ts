import type { Balance, Key } from "../../customers/keys/key.ts";
import type { EpochMs } from "../../units/clock.ts";
import { sql, verbatim } from "../database/database.ts";
import { ROTATION_ID } from "../schema/column-names.ts";

/** A key's columns, under the names of its members. */
export const KEY = sql`id, hash, prefix, name, balance_id AS "balanceId", ${verbatim(ROTATION_ID)} AS "rotationId", root,
  state, created_at AS "createdAt", expires_at AS "expiresAt", rpm_limit AS "rpmLimit", tpm_limit AS "tpmLimit",
  daily_limit AS "dailyLimit", monthly_limit AS "monthlyLimit", allowed_models AS "allowedModels", budgets,
  price_list AS "priceList", policy`;

export type KeyRow = Omit<Key, "allowedModels" | "budgets" | "policy"> & {
  readonly policy: string | null;
  readonly allowedModels: string | null;
  readonly budgets: string;
};

export const keyFromRow = (row: KeyRow): Key => ({
  ...row,
  allowedModels: row.allowedModels === null ? null : JSON.parse(row.allowedModels),
  budgets: JSON.parse(row.budgets),
  policy: row.policy === null ? null : JSON.parse(row.policy),
});

/** For a key that is to be revoked. */
export const revokedFromRow = (row: KeyRow): Key => ({ ...keyFromRow(row), state: "revoked" });

/** The key as a row of its table. */
export const rowOf = (key: Key) => ({
  id: key.id,
  hash: key.hash,
  prefix: key.prefix,
  balance_id: key.balanceId,
  [ROTATION_ID]: key.rotationId,
  root: key.root,
  created_at: key.createdAt,
  ...changeable(key),
});

/** TableColumns that a key's life changes; lists are JSON. */
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
  price_list: key.priceList,
  policy: key.policy ? JSON.stringify(key.policy) : null,
});

/** The same of balance `b` of account `a`, which is suspended with it. */
export const BALANCE = sql`b.id, b.account_id AS "accountId", coalesce(b.suspended, a.suspended) AS suspended,
  b.created_at AS "createdAt", b.setup_key AS "setUpKey", b.secrets_saved_at AS "secretsSavedAt", b.closed_at AS closed,
  b.price_list AS "priceList", b.low_credit AS "lowCredit", b.reclaims, b.recovery_hash AS recovery, b.undo_hash AS undo`;

export type BalanceRow = Omit<Balance, "closed"> & { readonly closed: EpochMs | null };

export const balanceFromRow = (row: BalanceRow): Balance => ({ ...row, closed: row.closed !== null });
