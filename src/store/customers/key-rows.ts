import type { Balance, Key } from "../../customers/keys/key.ts";
import type { EpochMs } from "../../units/clock.ts";
import { sql } from "../database/database.ts";
import { AS_JSON, ROTATION_ID, TableColumns } from "../schema/columns.ts";

export const KEY = new TableColumns<Key>(
  `id hash prefix name balanceId rotationId root state createdAt expiresAt rpmLimit tpmLimit dailyLimit monthlyLimit
    allowedModels budgets priceList policy`,
  { rotationId: ROTATION_ID, allowedModels: AS_JSON, budgets: AS_JSON, policy: AS_JSON },
);

/** For a key that is to be revoked. */
export const revokedFromRow = (row: object): Key => ({ ...KEY.read(row), state: "revoked" });

/** What a key's life changes. */
export function changeable(key: Key) {
  const { id, hash, prefix, balanceId, rotationId, root, createdAt, ...changed } = key;
  return KEY.row(changed);
}

/** Columns of balance `b` of account `a`, which is suspended with it. */
export const BALANCE = sql`b.id, b.account_id AS "accountId", coalesce(b.suspended, a.suspended) AS suspended,
  b.created_at AS "createdAt", b.setup_key AS "setUpKey", b.secrets_saved_at AS "secretsSavedAt", b.closed_at AS closed,
  b.price_list AS "priceList", b.low_credit AS "lowCredit", b.reclaims, b.recovery_hash AS recovery, b.undo_hash AS undo`;

export type BalanceRow = Omit<Balance, "closed"> & { readonly closed: EpochMs | null };

export const balanceFromRow = (row: BalanceRow): Balance => ({ ...row, closed: row.closed !== null });
