import type { Database } from "bun:sqlite";
import { balanceCounter, type CounterId } from "../../ledger/counter.ts";
import type { RunningSums } from "../../ledger/counter-cache.ts";
import type { Credit, CreditClaim } from "../../ledger/credit.ts";
import type { DebitStore } from "../../ledger/debits.ts";
import { assert } from "../../units/assert.ts";
import { type EpochMs, HOUR_MS, systemClock } from "../../units/clock.ts";
import { type BalanceId, firstReceiptId, type ReceiptId } from "../../units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../units/usd.ts";
import { type Batch, flattened, type SqlPart, sql } from "../database/database.ts";
import { SqliteDatabase, writtenFor } from "../database/sqlite-database.ts";
import { exportedOrOld } from "../export/export-store.ts";
import type { Unapplied } from "../journal/journal.ts";
import {
  type CreditRow,
  creditedBy,
  creditFromRow,
  creditsOf,
  endingClaim,
  enteringCreditOf,
  enteringDebit,
  entryOf,
  lowCreditLine,
  openClaims,
} from "./credits.ts";
import { forgettingFiles, type ReachedFile, reachedFiles, reachedFrom, shipping } from "./ends.ts";
import { folding } from "./fold.ts";
import type { ReceiptFilter, StoredReceipt, StoredReceiptPage } from "./receipts.ts";
import {
  type AuditRow,
  auditFrom,
  MAX_SCANNED,
  matching,
  RECEIPT,
  receiptOf,
  recomputing,
  type StoreAudit,
} from "./sql-ledger-store.ts";

/**
 * The books in SQLite: append-only double entry, the running sums that a start reads, and the receipts. Ends
 * of requests arrive from the journal in batches; credits are written directly, and durably.
 */
export class LedgerStore implements RunningSums, DebitStore {
  private readonly sql: SqliteDatabase;

  constructor(
    private readonly db: Database,
    private readonly now: () => EpochMs = systemClock.now,
  ) {
    this.sql = new SqliteDatabase(db);
  }

  /** As `ship`, where one process has all of the ledger. */
  apply(batch: readonly Unapplied[]): void {
    this.ship(null, null, batch);
  }

  /** Books a batch of a node's ends, and how far its journal is then booked: see `shipping`. */
  ship(node: string | null, epoch: number | null, batch: readonly Unapplied[]): void {
    const at = this.now();
    if (batch.length > 0) this.sql.transact(() => shipping(this.sql, { node, epoch, batch, at }));
  }

  /** How far each file of the journal is booked, in bytes. */
  reached(node: string | null = null): Map<number, number> {
    return reachedFrom(this.sql.answer<ReachedFile>(reachedFiles(node)));
  }

  /** Forgets the offsets of files that are gone. */
  forgetReachedBefore(file: number, node: string | null = null): void {
    this.sql.answer(forgettingFiles(node, file));
  }

  /**
   * Makes everything committed so far durable in the database itself. False when another reader, such as a
   * backup, prevents that; then not even the log need have been synced. Writers do not wait for it.
   */
  checkpoint(): boolean {
    const [row] = this.sql.answer<{ busy: number; log: number; checkpointed: number }>(
      sql`PRAGMA wal_checkpoint(PASSIVE)`,
    );
    return row!.busy === 0 && row!.log === row!.checkpointed;
  }

  spent(id: CounterId): NanoUsd {
    return this.sumsOf(id).spent;
  }

  credited(id: BalanceId): NanoUsd {
    return this.sumsOf(balanceCounter(id)).credited;
  }

  private sumsOf(id: CounterId): { credited: NanoUsd; spent: NanoUsd } {
    const [row] = this.sql.answer<{ credited: NanoUsd; spent: NanoUsd }>(
      sql`SELECT credited, spent FROM counters WHERE id = ${id}`,
    );
    return row ?? { credited: ZERO_USD, spent: ZERO_USD };
  }

  /** For callers that must not go on with a balance that was just removed. */
  hasBalance(id: BalanceId): boolean {
    return this.sql.answer(sql`SELECT 1 FROM balances WHERE id = ${id}`).length > 0;
  }

  /**
   * Credits a balance, whether or not it is there, once for each idempotency key. Durable on return, with what was
   * credited under that key, now or before; null where it would come to more in all than is counted exactly.
   */
  credit(credit: Credit): Credit | null {
    const known = this.entry(credit.idempotencyKey);
    if (known !== null) return known;
    return this.commit(enteringCreditOf(credit)) === null ? null : credit;
  }

  /**
   * Takes credit back, once for each idempotency key. Durable on return, with what was done under that key,
   * now or before. That there is as much, the ledger has made sure (ledger/debits): the charges of ends that
   * are still in the journal are not known here.
   */
  debit(entry: Credit): Credit {
    const known = this.entry(entry.idempotencyKey);
    if (known !== null) return known;
    const before = this.sumsOf(balanceCounter(entry.balanceId));
    const { credited, spent } = before;
    // Only a claim is on what may be spent meanwhile.
    const isCovered = entry.amount === 0 || (entry.claimed ?? 0) > 0 || credited + entry.amount >= spent;
    assert(isCovered, `${-entry.amount} taken of ${entry.balanceId}, now overspent`);
    const lines = this.sql.answer(lowCreditLine(entry.balanceId));
    this.commit(enteringDebit(this.sql, entry, before, lines, creditedBy(entry.balanceId, entry.amount)));
    return entry;
  }

  claims(after: string, limit: number): readonly CreditClaim[] {
    return this.sql.answer<CreditClaim>(openClaims(after, limit));
  }

  /** Durable on return. What is lost, the ledger knows: see `claims`. */
  endClaim(claim: CreditClaim, lost: NanoUsd, at: EpochMs): boolean {
    return this.commit(endingClaim(claim, lost, at, creditedBy(claim.balanceId, lost))) !== null;
  }

  private commit(batch: Batch): readonly number[] | null {
    return this.sql.commitNow(flattened(batch).map(writtenFor));
  }

  /** What was credited, or taken back, under this idempotency key. */
  entry(idempotencyKey: string): Credit | null {
    const [row] = this.sql.answer<CreditRow>(entryOf(idempotencyKey));
    return row === undefined ? null : creditFromRow(row);
  }

  receipt(id: ReceiptId): StoredReceipt | null {
    return this.sql.answer<StoredReceipt>(receiptOf(id))[0] ?? null;
  }

  /**
   * Newest first, from below `before`. A filter may match little, and only a bounded number of receipts is
   * scanned, so a page may be short, even empty, and still say where the next one begins.
   */
  receipts(
    balanceId: BalanceId | null,
    filter: ReceiptFilter,
    limit: number,
    before: ReceiptId | null,
  ): StoredReceiptPage {
    // Read in one transaction: if ends were booked between the statements, the next page would begin too
    // high.
    return this.db.transaction(() => this.readPage(balanceId, filter, limit, before))();
  }

  private readPage(
    balanceId: BalanceId | null,
    filter: ReceiptFilter,
    limit: number,
    before: ReceiptId | null,
  ): StoredReceiptPage {
    const { since, until } = filter;
    const below = Math.min(
      before === null ? Number.MAX_SAFE_INTEGER : (this.sequence(sql`receipt = ${before}`) ?? 0),
      until === null ? Number.MAX_SAFE_INTEGER : this.firstBehind(until),
    );
    // By the balance's index: further indexes would be paid for by every request.
    const whose = balanceId === null ? sql`TRUE` : sql`balance_id = ${balanceId}`;
    const scanned = sql`FROM (SELECT * FROM ends WHERE ${whose} AND seq < ${below} ORDER BY seq DESC LIMIT ${MAX_SCANNED})`;
    const found = this.sql.answer<StoredReceipt>(sql`SELECT ${RECEIPT} ${scanned}
      WHERE ${matching(this.sql, filter)} AND at >= ${since ?? 0} AND at < ${until ?? Number.MAX_SAFE_INTEGER}
      ORDER BY seq DESC LIMIT ${limit + 1}`);
    if (found.length > limit) {
      return { receipts: found.slice(0, limit), nextBefore: found[limit - 1]!.id };
    }
    const [window] = this.sql.answer<ScannedWindow>(sql`
      SELECT receipt AS last, count(*) OVER () AS rows, max(at) OVER () AS newest ${scanned} ORDER BY seq LIMIT 1`);
    const isEnd =
      window === undefined ||
      window.rows < MAX_SCANNED ||
      (since !== null && window.newest < since - LATE_MS);
    return { receipts: found, nextBefore: isEnd ? null : window.last };
  }

  /** The sequence from which on no request began before `at`. */
  private firstBehind(at: EpochMs): number {
    const first = firstReceiptId((at + LATE_MS) as EpochMs);
    return this.sequence(sql`receipt >= ${first}`) ?? Number.MAX_SAFE_INTEGER;
  }

  private sequence(where: SqlPart): number | undefined {
    const [row] = this.sql.answer<{ seq: number }>(
      sql`SELECT seq FROM ends WHERE ${where} ORDER BY receipt LIMIT 1`,
    );
    return row?.seq;
  }

  /** Newest first. */
  credits(balanceId: BalanceId, limit: number): Credit[] {
    return this.sql.answer<CreditRow>(creditsOf(balanceId, limit)).map(creditFromRow);
  }

  /**
   * Deletes some of the receipts of requests admitted before `before`, and keeps their sums. Returns how many
   * were deleted; 0 when there are no more. Running sums stay as they are, because they cover everything.
   */
  fold(before: EpochMs): number {
    return this.sql.transact(() =>
      folding(
        this.sql,
        (
          columns,
        ) => sql`SELECT ${columns} FROM (SELECT * FROM ends ORDER BY seq LIMIT ${FOLD_SCANNED}) AS ends
          WHERE at < ${before} AND ${exportedOrOld(before)} AND ${keepsLast} LIMIT ${FOLD_SLICE}`,
      ),
    );
  }

  /** As `SqlLedgerStore.audit`. */
  audit(): StoreAudit {
    return auditFrom(this.sql.answer<AuditRow>(recomputing(this.sql)));
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

/** Ends are in the order of their booking, which is at most so long after their requests began. */
const LATE_MS = HOUR_MS;
