import type { EpochMs } from "../../units/clock.ts";
import type { BalanceId, ReceiptId } from "../../units/id.ts";
import { type SqlPart, sql } from "../database/database.ts";
import type { PostgresDatabase } from "../database/postgres-database.ts";
import { exportedOrOld } from "../export/export-store.ts";
import type { ReceiptFilter, StoredReceipt, StoredReceiptPage } from "./receipts.ts";
import { MAX_SCANNED, matching, RECEIPT, SqlLedgerStore } from "./sql-ledger-store.ts";

/** The books in PostgreSQL. */
export class PostgresLedgerStore extends SqlLedgerStore<PostgresDatabase> {
  /** Every commit is durable. */
  protected async checkpointNow(): Promise<boolean> {
    return true;
  }

  /**
   * Newest first, from below `before`. A filter may match little, so only so many are looked at: a page can
   * be short, even empty, and still say where the next one begins.
   */
  async receipts(
    balance: BalanceId | null,
    filter: ReceiptFilter,
    limit: number,
    before: ReceiptId | null,
  ): Promise<StoredReceiptPage> {
    const { since, until } = filter;
    const rows = await this.db.read<StoredReceipt & { matches: boolean }>`
      SELECT ${RECEIPT}, ${matching(this.db, filter)} AS matches FROM ends
      WHERE ${balance === null ? sql`TRUE` : sql`balance_id = ${balance}`}
        AND at >= ${since ?? 0} AND at < ${until ?? Number.MAX_SAFE_INTEGER} AND (at, receipt) < (
        coalesce((SELECT at FROM ends WHERE receipt = ${before}), ${Number.MAX_SAFE_INTEGER}), coalesce(${before}::text, ''))
      ORDER BY at DESC, receipt DESC LIMIT ${MAX_SCANNED}`;
    const found = rows.flatMap(({ matches, ...receipt }) => (matches ? [receipt] : []));
    if (found.length > limit) return { receipts: found.slice(0, limit), nextBefore: found[limit - 1]!.id };
    return { receipts: found, nextBefore: rows.length === MAX_SCANNED ? rows.at(-1)!.id : null };
  }

  /** An end whose hold is still there stays: when its node is closed, nothing else says that the hold was ended. */
  protected oldest(columns: SqlPart, before: EpochMs): SqlPart {
    return sql`SELECT ${columns} FROM ends
      WHERE at < ${before} AND ${exportedOrOld(before)}
        AND NOT EXISTS (SELECT 1 FROM holds WHERE holds.receipt = ends.receipt)
      ORDER BY at LIMIT ${FOLD_SLICE} FOR UPDATE SKIP LOCKED`;
  }
}

/** Some 20 ms of PostgreSQL. */
const FOLD_SLICE = 500;
