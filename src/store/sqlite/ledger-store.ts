import type { Database } from "bun:sqlite";
import { balanceCounter, type CounterId } from "../../ledger/counter.ts";
import type { Credit, CreditClaim } from "../../ledger/credit.ts";
import type { DebitStore } from "../../ledger/debits.ts";
import type { RunningSums } from "../../ledger/ledger.ts";
import type { TerminalRecord } from "../../ledger/record.ts";
import { assert } from "../../units/assert.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { BalanceId, ReceiptId } from "../../units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../units/usd.ts";
import type { Drift, StoreAudit } from "../audit.ts";
import { addSpending, chargesOf, countersColumn, foldEnds, type SummedEnd, words } from "../fold.ts";
import { places, type Unapplied } from "../journal/journal.ts";
import type { ReceiptFilter, StoredReceipt, StoredReceiptPage } from "../receipts.ts";
import { creditsOf, endClaim, enterCredit, enterDebit, entryOf, openClaims } from "../sql/credits.ts";
import type { Steps } from "../sql/statement.ts";
import { SqliteStatements } from "./statements.ts";

/**
 * The books in SQLite: append-only double entry, the running sums that a start reads, and the receipts. Ends
 * of requests arrive from the journal in batches; credits are written directly, and durably.
 */
export class LedgerStore implements RunningSums, DebitStore {
  private readonly statements;
  private readonly sql: SqliteStatements;

  constructor(private readonly db: Database) {
    this.statements = prepare(db);
    this.sql = new SqliteStatements(db);
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
        for (const [file, bytes] of places(batch)) this.statements.reached.run(file, bytes);
      })
      .immediate();
  }

  /** Books ends inside somebody's transaction; returns what those come to that were not booked before. */
  book(batch: readonly Pick<Unapplied, "record">[]): ReadonlyMap<CounterId, number> {
    const spent = new Map<CounterId, number>();
    for (const { record } of batch) if (this.addEnd(record)) addSpending(spent, record);
    for (const [counter, amount] of spent) this.statements.spend.run(counter, amount);
    return spent;
  }

  /** How far each journal file has been applied, in bytes. */
  reached(): Map<number, number> {
    return new Map(this.statements.reachedAll.all().map(({ file, bytes }) => [file, bytes]));
  }

  /** Forgets the places of files that are gone. */
  forgetReachedBefore(file: number): void {
    this.statements.forgetReached.run(file);
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

  /** For whoever must not go on with a balance that was just removed. */
  hasBalance(id: BalanceId): boolean {
    return this.statements.balance.get(id) !== null;
  }

  /** As `enterCredit`. Durable on return. */
  credit(credit: Credit): Credit | null {
    return this.sql.commit(() => enterCredit(this.sql, credit));
  }

  /**
   * Takes credit back, once for each idempotency key. Durable on return, with what was done under that key,
   * now or before. That there is as much, the ledger has made sure (ledger/debits): the charges of ends that
   * are still in the journal are not known here.
   */
  debit(entry: Credit): Credit {
    return this.sql.commit(() => this.takeBack(entry));
  }

  private *takeBack(entry: Credit): Steps<Credit> {
    const known = yield* entryOf(this.sql, entry.idempotencyKey);
    if (known !== null) return known;
    const { credited, spent } = this.statements.counter.get(balanceCounter(entry.balanceId))!;
    // Only a claim is on what may be spent meanwhile.
    const isCovered = entry.amount === 0 || (entry.claimed ?? 0) > 0 || credited + entry.amount >= spent;
    assert(isCovered, `${-entry.amount} taken of ${entry.balanceId}, now overspent`);
    yield* enterDebit(entry);
    return entry;
  }

  claims(after: string, limit: number): readonly CreditClaim[] {
    return this.sql.take(openClaims(after, limit));
  }

  /** Durable on return. What is lost, the ledger knows: see `claims`. */
  endClaim(claim: CreditClaim, lost: NanoUsd, at: EpochMs): void {
    this.sql.commit(() => endClaim(claim, lost, at));
  }

  /** What was credited, or taken back, under this idempotency key. */
  entry(idempotencyKey: string): Credit | null {
    return this.sql.take(entryOf(this.sql, idempotencyKey));
  }

  receipt(id: ReceiptId): StoredReceipt | null {
    return this.statements.receipt.get(id);
  }

  /**
   * Newest first, from below `before`. A filter may match little, and only a bounded number of receipts is
   * scanned, so a page may be short, even empty, and still say where the next one begins.
   */
  receipts(
    balanceId: BalanceId,
    filter: ReceiptFilter,
    limit: number,
    before: ReceiptId | null,
  ): StoredReceiptPage {
    // Read in one transaction: if ends were booked between the statements, the next page would begin too
    // high.
    return this.db.transaction(() => this.readPage(balanceId, filter, limit, before))();
  }

  private readPage(
    balanceId: BalanceId,
    { keyId, model, state }: ReceiptFilter,
    limit: number,
    before: ReceiptId | null,
  ): StoredReceiptPage {
    const from = before === null ? null : this.statements.sequence.get(before);
    const below = from?.seq ?? Number.MAX_SAFE_INTEGER;
    const found = this.statements.receipts.all(balanceId, below, keyId, state, model, limit + 1);
    if (found.length > limit) {
      return { receipts: found.slice(0, limit), nextBefore: found[limit - 1]!.id };
    }
    return { receipts: found, nextBefore: this.statements.lastScanned.get(balanceId, below)?.id ?? null };
  }

  /** Newest first. */
  credits(balanceId: BalanceId, limit: number): Credit[] {
    return this.sql.take(creditsOf(balanceId, limit));
  }

  /**
   * Deletes some of the receipts of requests admitted before `before`, and keeps their sums. Returns how many
   * were deleted; 0 when there are no more. Running sums stay as they are, because they cover everything.
   */
  fold(before: EpochMs): number {
    return this.db
      .transaction((): number => {
        const ends = this.statements.oldest.all(before);
        const { months, counters } = foldEnds(ends);
        for (const { balance_id, month, receipts, charged, written_off, lost } of months) {
          this.statements.foldMonth.run(balance_id, month, receipts, charged, written_off, lost);
        }
        for (const [counter, spent] of counters) this.statements.foldCounter.run(counter, spent);
        for (const { seq } of ends) this.statements.forgetEnd.run(seq);
        return ends.length;
      })
      .immediate();
  }

  /**
   * Recomputes every sum from the credits and ends, and what is kept of ends that were deleted. `drifts` are
   * the accounts whose running sum is not what those say; none, when the books are right.
   */
  audit(): StoreAudit {
    // All of it as it was at one moment: others write meanwhile.
    return this.db.transaction(() => this.recompute())();
  }

  private recompute(): StoreAudit {
    const credited = new Map<string, bigint>();
    const spent = new Map<string, bigint>();
    const reserved = new Map<string, bigint>();
    const totals = { credits: 0n, charges: 0n, losses: 0n, writeOffs: 0n };
    for (const { balanceId, amount } of this.statements.credits.iterate()) {
      totals.credits += BigInt(amount);
      add(credited, balanceCounter(balanceId as BalanceId), BigInt(amount));
    }
    for (const end of this.statements.ends.iterate()) {
      totals.charges += BigInt(end.charged);
      totals.losses += BigInt(end.lost);
      totals.writeOffs += BigInt(end.writtenOff);
      add(spent, balanceCounter(end.balanceId as BalanceId), BigInt(end.charged));
      for (const [counter, charged] of chargesOf(end)) add(spent, counter, BigInt(charged));
      for (const allowance of words(end.allowances)) add(spent, allowance, 1n);
    }
    for (const { counter, spent: kept } of this.statements.foldedCounters.iterate()) {
      add(spent, counter, BigInt(kept));
    }
    for (const { counter, open } of this.statements.granted.iterate()) add(reserved, counter, BigInt(open));
    const drifts: Drift[] = [];
    for (const row of this.statements.counters.iterate()) {
      const drift =
        difference(credited.get(row.id), row.credited) +
        difference(spent.get(row.id), row.spent) +
        difference(reserved.get(row.id), row.reserved);
      if (drift !== 0n) drifts.push({ account: row.id, driftNano: drift });
      credited.delete(row.id);
      spent.delete(row.id);
      reserved.delete(row.id);
    }
    for (const rest of [credited, spent, reserved]) {
      for (const [account, amount] of rest) if (amount !== 0n) drifts.push({ account, driftNano: amount });
    }
    return { ...totals, drifts };
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
    );
    return changes > 0;
  }
}

function add(sums: Map<string, bigint>, account: string, amount: bigint): void {
  sums.set(account, (sums.get(account) ?? 0n) + amount);
}

const difference = (recomputed: bigint | undefined, stored: number): bigint => {
  const by = (recomputed ?? 0n) - BigInt(stored);
  return by < 0n ? -by : by;
};

interface EndRow {
  balanceId: string;
  charged: number;
  writtenOff: number;
  lost: number;
  counters: string;
  allowances: string;
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

/** Receipts that one page looks at: some 5 ms of the event loop when a model is filtered for. */
const MAX_SCANNED = 2_000;

const RECEIPT_COLUMNS = "receipt AS id, at, balance_id AS balanceId, key_id AS keyId, body";

function prepare(db: Database) {
  return {
    end: db.query<
      never,
      [string, number, string, string, string, number, number, number, string, string, string]
    >(
      `INSERT OR IGNORE INTO ends
         (receipt, at, balance_id, key_id, state, charged, written_off, lost, counters, allowances, body)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    spend: db.query<never, [string, number]>(
      `INSERT INTO counters (id, spent) VALUES (?, ?)
       ON CONFLICT (id) DO UPDATE SET spent = spent + excluded.spent`,
    ),
    counter: db.query<CounterRow, [string]>(
      "SELECT id, credited, spent, reserved FROM counters WHERE id = ?",
    ),
    balance: db.query<object, [string]>("SELECT 1 FROM balances WHERE id = ?"),
    counters: db.query<CounterRow, []>("SELECT id, credited, spent, reserved FROM counters"),
    credits: db.query<{ balanceId: string; amount: number }, []>(
      "SELECT balance_id AS balanceId, amount FROM credits",
    ),
    // A folded month is the end of all its requests.
    ends: db.query<EndRow, []>(
      `SELECT balance_id AS balanceId, charged, written_off AS writtenOff, lost, counters, allowances FROM ends
       UNION ALL SELECT balance_id, charged, written_off, lost, '', '' FROM folded`,
    ),
    foldedCounters: db.query<{ counter: string; spent: number }, []>(
      "SELECT counter, spent FROM folded_counters",
    ),
    granted: db.query<{ counter: string; open: number }, []>(
      "SELECT counter, sum(granted - shipped) AS open FROM grants GROUP BY counter",
    ),
    oldest: db.query<SummedEnd & { seq: number }, [number]>(
      `SELECT seq, receipt, at, balance_id, charged, written_off, lost, counters, allowances FROM
         (SELECT * FROM ends ORDER BY seq LIMIT ${FOLD_SCANNED})
       WHERE at < ? LIMIT ${FOLD_SLICE}`,
    ),
    foldMonth: db.query<never, [string, number, number, number, number, number]>(
      `INSERT INTO folded (balance_id, month, receipts, charged, written_off, lost) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (balance_id, month) DO UPDATE SET receipts = receipts + excluded.receipts,
         charged = charged + excluded.charged, written_off = written_off + excluded.written_off,
         lost = lost + excluded.lost`,
    ),
    foldCounter: db.query<never, [string, number]>(
      `INSERT INTO folded_counters (counter, spent) VALUES (?, ?)
       ON CONFLICT (counter) DO UPDATE SET spent = spent + excluded.spent`,
    ),
    forgetEnd: db.query<never, [number]>("DELETE FROM ends WHERE seq = ?"),
    receipt: db.query<StoredReceipt, [string]>(`SELECT ${RECEIPT_COLUMNS} FROM ends WHERE receipt = ?`),
    sequence: db.query<{ seq: number }, [string]>("SELECT seq FROM ends WHERE receipt = ?"),
    // By the balance's index: further indexes would be paid for by every request.
    receipts: db.query<StoredReceipt, [string, number, string | null, string | null, string | null, number]>(
      `SELECT ${RECEIPT_COLUMNS} FROM
         (SELECT * FROM ends WHERE balance_id = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ${MAX_SCANNED})
       WHERE (?3 IS NULL OR key_id = ?3) AND (?4 IS NULL OR state = ?4)
         AND (?5 IS NULL OR ?5 IN (body ->> '$.model', body ->> '$.model_requested'))
       ORDER BY seq DESC LIMIT ?6`,
    ),
    lastScanned: db.query<{ id: ReceiptId }, [string, number]>(
      `SELECT receipt AS id FROM ends WHERE balance_id = ? AND seq < ?
       ORDER BY seq DESC LIMIT 1 OFFSET ${MAX_SCANNED - 1}`,
    ),
    reached: db.query<never, [number, number]>(
      `INSERT INTO applied (file, bytes) VALUES (?, ?)
       ON CONFLICT (file) DO UPDATE SET bytes = max(bytes, excluded.bytes)`,
    ),
    reachedAll: db.query<{ file: number; bytes: number }, []>("SELECT file, bytes FROM applied"),
    forgetReached: db.query<never, [number]>("DELETE FROM applied WHERE file < ?"),
    checkpoint: db.query<{ busy: number; log: number; checkpointed: number }, []>(
      "PRAGMA wal_checkpoint(PASSIVE)",
    ),
  };
}
