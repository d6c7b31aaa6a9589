import type { Database } from "bun:sqlite";
import { balanceCounter, type CounterId } from "../../ledger/counter.ts";
import type { RunningSums } from "../../ledger/counter-cache.ts";
import type { Credit, CreditClaim } from "../../ledger/credit.ts";
import { creditEvents } from "../../ledger/credit-events.ts";
import type { DebitStore } from "../../ledger/debits.ts";
import { EpochFenced } from "../../ledger/membership.ts";
import type { TerminalRecord } from "../../ledger/record.ts";
import { assert } from "../../units/assert.ts";
import { type EpochMs, HOUR_MS, systemClock } from "../../units/clock.ts";
import { type BalanceId, firstReceiptId, type ReceiptId } from "../../units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../units/usd.ts";
import {
  CHARGES_TAKEN,
  type ChargedCounter,
  chargedCounters,
  lowCreditOf,
  recording,
  recordingCharges,
} from "../customers/events.ts";
import { type Batch, flattened, type SqlPart, sql } from "../database/database.ts";
import { SqliteDatabase, writtenFor } from "../database/sqlite-database.ts";
import { exportedOrOld } from "../export/export-store.ts";
import { fileOffsets, type Unapplied } from "../journal/journal.ts";
import {
  type CreditRow,
  creditedBy,
  creditFromRow,
  creditsOf,
  endingClaim,
  enteringCreditOf,
  entryOf,
  insertEntry,
  loggingEntry,
  openClaims,
} from "./credits.ts";
import { addSpending, countersColumn, folding } from "./fold.ts";
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
  private readonly statements;
  private readonly sql: SqliteDatabase;

  constructor(
    private readonly db: Database,
    private readonly now: () => EpochMs = systemClock.now,
  ) {
    this.statements = prepare(db);
    this.sql = new SqliteDatabase(db);
  }

  /**
   * Books a batch of ends, together with the position up to which the journal is now booked, in one
   * transaction. Booking an end again changes nothing, so replaying a journal is safe.
   */
  apply(batch: readonly Unapplied[]): void {
    if (batch.length === 0) return;
    this.db
      .transaction(() => {
        this.book(batch);
        this.sql.run(
          [...fileOffsets(batch)].map(
            ([file, bytes]) => sql`INSERT INTO applied (file, bytes) VALUES (${file}, ${bytes})
              ON CONFLICT (file) DO UPDATE SET bytes = max(bytes, excluded.bytes)`,
          ),
        );
      })
      .immediate();
  }

  /** Books ends inside somebody's transaction; returns what those come to that were not booked before. */
  book(batch: readonly Pick<Unapplied, "record">[]): ReadonlyMap<CounterId, number> {
    const spent = new Map<CounterId, number>();
    const ends = batch.flatMap(({ record }) => (this.addEnd(record) ? record : []));
    for (const end of ends) addSpending(spent, end);
    for (const [counter, amount] of spent) this.statements.spend.run(counter, amount);
    this.recordEvents(spent, ends);
    return spent;
  }

  /** Inside the transaction that charged these. */
  private recordEvents(spent: ReadonlyMap<CounterId, number>, ends: readonly TerminalRecord[]): void {
    if (this.statements.taker.get() === null) return;
    const query = chargedCounters(this.sql, spent, ends);
    const charged = query === null ? [] : this.sql.answer<ChargedCounter>(query);
    this.sql.run(recordingCharges(this.sql, charged, ends, this.now()));
  }

  /** How far each journal file has been applied, in bytes. */
  reached(): Map<number, number> {
    const rows = this.sql.answer<ReachedFile>(sql`SELECT file, bytes FROM applied`);
    return new Map(rows.map(({ file, bytes }) => [file, bytes]));
  }

  /** Forgets the fileOffsets of files that are gone. */
  forgetReachedBefore(file: number): void {
    this.sql.run([sql`DELETE FROM applied WHERE file < ${file}`]);
  }

  /**
   * Makes everything committed so far durable in the database itself. False when another reader, such as a
   * backup, prevents that; then not even the log need have been synced. Writers do not wait for it.
   */
  checkpoint(): boolean {
    const { busy, log, checkpointed } = this.statements.checkpoint.get()!;
    return busy === 0 && log === checkpointed;
  }

  spent(id: CounterId): NanoUsd {
    return (this.statements.counter.get(id)?.spent ?? ZERO_USD) as NanoUsd;
  }

  credited(id: BalanceId): NanoUsd {
    return (this.statements.counter.get(balanceCounter(id))?.credited ?? ZERO_USD) as NanoUsd;
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
    const { credited, spent } = this.statements.counter.get(balanceCounter(entry.balanceId))!;
    // Only a claim is on what may be spent meanwhile.
    const isCovered = entry.amount === 0 || (entry.claimed ?? 0) > 0 || credited + entry.amount >= spent;
    assert(isCovered, `${-entry.amount} taken of ${entry.balanceId}, now overspent`);
    const [line] = this.sql.answer<{ low: NanoUsd | null }>(
      sql`SELECT ${lowCreditOf(sql`${entry.balanceId}`)} AS low`,
    );
    const after = { credited: credited + entry.amount, spent };
    const events = creditEvents(entry.balanceId, { credited, spent }, after, {
      low: line!.low,
      at: entry.at,
    });
    this.commit([
      creditedBy(entry.balanceId, entry.amount),
      insertEntry(entry),
      recording(this.sql, events),
      loggingEntry(entry),
    ]);
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
    return this.sql.locked(
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

  private addEnd(end: TerminalRecord): boolean {
    const { receipt, at, balance, key, state, charged, writtenOff, lost, allowances, body } = end;
    const { changes } = this.statements.end.run(
      receipt,
      at,
      balance,
      key,
      state,
      charged,
      writtenOff,
      lost,
      countersColumn(end),
      allowances.join(" "),
      body,
      end.hostCost ?? null,
    );
    return changes > 0;
  }
}

/** What a page looks at. */
interface ScannedWindow {
  readonly last: ReceiptId;
  readonly newest: number;
  readonly rows: number;
}

interface CounterRow {
  id: string;
  credited: number;
  spent: number;
  reserved: number;
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

function prepare(db: Database) {
  return {
    end: db.query<
      never,
      [string, number, string, string, string, number, number, number, string, string, string, number | null]
    >(
      `INSERT OR IGNORE INTO ends
         (receipt, at, balance_id, key_id, state, charged, written_off, lost, counters, allowances, body, host_cost)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    spend: db.query<never, [string, number]>(
      `INSERT INTO counters (id, spent) VALUES (?, ?)
       ON CONFLICT (id) DO UPDATE SET spent = spent + excluded.spent`,
    ),
    counter: db.query<CounterRow, [string]>(
      "SELECT id, credited, spent, reserved FROM counters WHERE id = ?",
    ),
    taker: db.query<object, []>(`SELECT 1 WHERE ${writtenFor(CHARGES_TAKEN).text}`),
    checkpoint: db.query<{ busy: number; log: number; checkpointed: number }, []>(
      "PRAGMA wal_checkpoint(PASSIVE)",
    ),
  };
}

/** The books in SQLite where several nodes spend: their ends leave what they were granted, and enter what is spent. */
export class NodeLedger {
  private readonly sql: SqliteDatabase;
  private readonly shipping;
  private readonly releasing;

  constructor(
    private readonly db: Database,
    private readonly ledger: LedgerStore,
  ) {
    this.sql = new SqliteDatabase(db);
    this.shipping = db.query<never, [number, string, string]>(
      "UPDATE grants SET shipped = shipped + ? WHERE counter = ? AND node = ?",
    );
    this.releasing = db.query<never, [number, string]>(
      "UPDATE counters SET reserved = reserved - ? WHERE id = ?",
    );
  }

  /**
   * Books a batch of a node's ends and the place up to which its journal is now known, in one transaction. An
   * end that is booked already changes nothing: its receipt is there, or, where that is deleted by now, its
   * place in the journal is known. Unlike grants, ends may still be shipped for an epoch that was closed: they
   * happened.
   */
  ship(node: string, epoch: number | null, batch: readonly Unapplied[]): void {
    if (batch.length === 0) return;
    this.db
      .transaction(() => {
        const [life] = this.sql.answer<{ epoch: number }>(sql`SELECT epoch FROM nodes WHERE name = ${node}`);
        if (epoch !== null && life?.epoch !== epoch)
          throw new EpochFenced(`epoch ${epoch} of ${node} is over`);
        const reached = this.reached(node);
        const spent = this.ledger.book(batch.filter(({ file, bytes }) => bytes > (reached.get(file) ?? 0)));
        for (const [counter, amount] of spent) {
          const { changes } = this.shipping.run(amount, counter, node);
          if (changes > 0) this.releasing.run(amount, counter);
        }
        this.sql.run(
          [...fileOffsets(batch)].map(
            ([file, bytes]) => sql`INSERT INTO shipped (node, file, bytes) VALUES (${node}, ${file}, ${bytes})
              ON CONFLICT (node, file) DO UPDATE SET bytes = max(bytes, excluded.bytes)`,
          ),
        );
      })
      .immediate();
  }

  /** How far each of the node's journal files was shipped, in bytes. */
  reached(node: string): Map<number, number> {
    const rows = this.sql.answer<ReachedFile>(sql`SELECT file, bytes FROM shipped WHERE node = ${node}`);
    return new Map(rows.map(({ file, bytes }) => [file, bytes]));
  }

  forgetReachedBefore(node: string, file: number): void {
    this.sql.run([sql`DELETE FROM shipped WHERE node = ${node} AND file < ${file}`]);
  }
}

interface ReachedFile {
  readonly file: number;
  readonly bytes: number;
}
