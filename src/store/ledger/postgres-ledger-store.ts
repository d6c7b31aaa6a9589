import { type EpochMs, systemClock } from "../../units/clock.ts";
import type { BalanceId, ReceiptId } from "../../units/id.ts";
import { sql } from "../database/database.ts";
import { type Postgres, URGENT } from "../database/postgres.ts";
import { PostgresDatabase } from "../database/postgres-database.ts";
import { exportedOrOld } from "../export/export-store.ts";
import type { Unapplied } from "../journal/journal.ts";
import { forgettingFiles, type ReachedFile, reachedFiles, reachedFrom, shipping } from "./ends.ts";
import { folding } from "./fold.ts";
import type { ReceiptFilter, StoredReceipt, StoredReceiptPage } from "./receipts.ts";
import { MAX_SCANNED, matching, RECEIPT, SqlLedgerStore } from "./sql-ledger-store.ts";

/** The books in PostgreSQL, and what nodes ship to them of their journals. */
export class PostgresLedgerStore extends SqlLedgerStore<PostgresDatabase> {
  constructor(postgres: Postgres) {
    super(new PostgresDatabase(postgres));
  }

  async ship(node: string, epoch: number | null, batch: readonly Unapplied[]): Promise<void> {
    const at = systemClock.now();
    if (batch.length > 0)
      await this.books.transact(() => shipping(this.books, { node, epoch, batch, at }), URGENT);
  }

  /**
   * How far each of the node's journal files was shipped, in bytes: what is below may be forgotten. A commit that still waits
   * for the replica becomes visible when PostgreSQL restarts, and a transaction that only reads it waits for nothing; one that
   * locks it does.
   */
  async reached(node: string): Promise<Map<number, number>> {
    return reachedFrom(await this.books.read<ReachedFile>`${reachedFiles(node)} FOR UPDATE`);
  }

  /** Every commit is durable. */
  async mayForget(): Promise<boolean> {
    return true;
  }

  async forgetReachedBefore(node: string, file: number): Promise<void> {
    await this.books.commit([forgettingFiles(node, file)]);
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
    const rows = await this.books.read<StoredReceipt & { matches: boolean }>`
      SELECT ${RECEIPT}, ${matching(this.books, filter)} AS matches FROM ends
      WHERE ${balance === null ? sql`TRUE` : sql`balance_id = ${balance}`}
        AND at >= ${since ?? 0} AND at < ${until ?? Number.MAX_SAFE_INTEGER} AND (at, receipt) < (
        coalesce((SELECT at FROM ends WHERE receipt = ${before}), ${Number.MAX_SAFE_INTEGER}), coalesce(${before}::text, ''))
      ORDER BY at DESC, receipt DESC LIMIT ${MAX_SCANNED}`;
    const found = rows.flatMap(({ matches, ...receipt }) => (matches ? [receipt] : []));
    if (found.length > limit) return { receipts: found.slice(0, limit), nextBefore: found[limit - 1]!.id };
    return { receipts: found, nextBefore: rows.length === MAX_SCANNED ? rows.at(-1)!.id : null };
  }

  /**
   * Deletes some of the receipts of requests that were admitted before `before`, and keeps what they come to.
   * Returns how many; none, when there are no more, or others are at them. An end whose hold is still there
   * stays: when its node is closed, nothing else says that the hold was ended.
   */
  fold(before: EpochMs): Promise<number> {
    return this.books.transact(() =>
      folding(
        this.books,
        (columns) => sql`SELECT ${columns} FROM ends
          WHERE at < ${before} AND ${exportedOrOld(before)}
            AND NOT EXISTS (SELECT 1 FROM holds WHERE holds.receipt = ends.receipt)
          ORDER BY at LIMIT ${FOLD_SLICE} FOR UPDATE SKIP LOCKED`,
      ),
    );
  }
}

/** Some 20 ms of PostgreSQL. */
const FOLD_SLICE = 500;
