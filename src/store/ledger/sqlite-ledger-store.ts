import { balanceCounter, type CounterId } from "../../ledger/counter.ts";
import type { RunningSums } from "../../ledger/counter-cache.ts";
import type { DebitStore } from "../../ledger/debits.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { BalanceId, ReceiptId } from "../../units/id.ts";
import type { NanoUsd } from "../../units/usd.ts";
import { type SqlPart, sql } from "../database/database.ts";
import type { SqliteDatabase } from "../database/sqlite-database.ts";
import { exportedOrOld } from "../export/export-store.ts";
import {
  LATE_MS,
  type ReceiptFilter,
  type StoredReceipt,
  type StoredReceiptPage,
  seqBehind,
} from "./receipts.ts";
import {
  type BookedSums,
  MAX_SCANNED,
  matching,
  NO_SUMS,
  RECEIPT,
  readingSums,
  SqlLedgerStore,
} from "./sql-ledger-store.ts";

/** The books in SQLite. Memory is filled from them within a turn of the event loop. */
export class SqliteLedgerStore extends SqlLedgerStore<SqliteDatabase> implements RunningSums, DebitStore {
  /**
   * Makes everything committed so far durable in the database itself. False when another reader, such as a
   * backup, prevents that; then not even the log need have been synced. Writers do not wait for it.
   */
  protected async checkpointNow(): Promise<boolean> {
    const [row] = this.db.answer<{ busy: number; log: number; checkpointed: number }>(
      sql`PRAGMA wal_checkpoint(PASSIVE)`,
    );
    return row!.busy === 0 && row!.log === row!.checkpointed;
  }

  override spent(id: CounterId): NanoUsd {
    return this.sumsNow(id).spent;
  }

  credited(id: BalanceId): NanoUsd {
    return this.sumsNow(balanceCounter(id)).credited;
  }

  private sumsNow(id: CounterId): BookedSums {
    return this.db.answer<BookedSums>(readingSums(id))[0] ?? NO_SUMS;
  }

  /**
   * Newest first, from below `before`. A filter may match little, and only a bounded number of receipts is
   * scanned, so a page may be short, even empty, and still say where the next one begins.
   */
  async receipts(...page: Parameters<SqlLedgerStore["receipts"]>): Promise<StoredReceiptPage> {
    // At one moment: if ends were booked between the statements, the next page would begin too high.
    return this.db.atOnce(() => this.readPage(...page));
  }

  private readPage(
    balanceId: BalanceId | null,
    filter: ReceiptFilter,
    limit: number,
    before: ReceiptId | null,
  ): StoredReceiptPage {
    const { since, until } = filter;
    const start = sql`(SELECT seq FROM ends WHERE receipt = ${before})`;
    const below = before === null ? seqBehind(until) : sql`min(coalesce(${start}, 0), ${seqBehind(until)})`;
    // By the balance's index: further indexes would be paid for by every request.
    const whose = balanceId === null ? sql`TRUE` : sql`balance_id = ${balanceId}`;
    const scanned = sql`FROM (SELECT * FROM ends WHERE ${whose} AND seq < ${below} ORDER BY seq DESC LIMIT ${MAX_SCANNED})`;
    const found = this.db.answer<StoredReceipt>(sql`SELECT ${RECEIPT} ${scanned}
      WHERE ${matching(this.db, filter)} AND at >= ${since ?? 0} AND at < ${until ?? Number.MAX_SAFE_INTEGER}
      ORDER BY seq DESC LIMIT ${limit + 1}`);
    if (found.length > limit) {
      return { receipts: found.slice(0, limit), nextBefore: found[limit - 1]!.id };
    }
    const [window] = this.db.answer<ScannedWindow>(sql`
      SELECT receipt AS last, count(*) OVER () AS rows, max(at) OVER () AS newest ${scanned} ORDER BY seq LIMIT 1`);
    const isEnd =
      window === undefined ||
      window.rows < MAX_SCANNED ||
      (since !== null && window.newest < since - LATE_MS);
    return { receipts: found, nextBefore: isEnd ? null : window.last };
  }

  protected oldest(columns: SqlPart, before: EpochMs): SqlPart {
    return sql`SELECT ${columns} FROM (SELECT * FROM ends ORDER BY seq LIMIT ${FOLD_SCANNED}) AS ends
      WHERE at < ${before} AND ${exportedOrOld(before)} AND ${keepsLast} LIMIT ${FOLD_SLICE}`;
  }
}

/** What a page looks at. */
interface ScannedWindow {
  readonly last: ReceiptId;
  readonly newest: number;
  readonly rows: number;
}

/** At some 11 µs each, who changes a key waits for three milliseconds at most. */
const FOLD_SLICE = 256;
/**
 * Ends are booked nearly in the order of their admission: among so many of the first, those that are old are
 * found. Only receipts of a clock that was ahead can be in the way, and only more of them than this.
 */
const FOLD_SCANNED = 1_024;

/** SQLite numbers the next row by the last that is there, and an export passes over numbers that it has had. */
const keepsLast = sql`(seq < (SELECT max(seq) FROM ends) OR NOT EXISTS (SELECT 1 FROM export_cursors))`;
