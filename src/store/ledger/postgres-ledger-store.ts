import type { TransactionSQL } from "bun";
import type { CounterId } from "../../ledger/counter.ts";
import { EpochFenced } from "../../ledger/membership.ts";
import type { TerminalRecord } from "../../ledger/record.ts";
import { type EpochMs, systemClock } from "../../units/clock.ts";
import type { BalanceId, ReceiptId } from "../../units/id.ts";
import { type ChargedCounter, chargedCounters, recordingCharges } from "../customers/events.ts";
import { flattened, sql } from "../database/database.ts";
import { type Postgres, URGENT } from "../database/postgres.ts";
import { POSTGRES_TABLES, PostgresDatabase, performAll, rowsOf } from "../database/postgres-database.ts";
import { exportedOrOld } from "../export/export-store.ts";
import { fileOffsets, type Unapplied } from "../journal/journal.ts";
import { addSpending, countersColumn, folding } from "./fold.ts";
import type { ReceiptFilter, StoredReceipt, StoredReceiptPage } from "./receipts.ts";
import { MAX_SCANNED, matching, RECEIPT, SqlLedgerStore } from "./sql-ledger-store.ts";

/** The books in PostgreSQL, and what nodes ship to them of their journals. */
export class PostgresLedgerStore extends SqlLedgerStore<PostgresDatabase> {
  constructor(private readonly postgres: Postgres) {
    super(new PostgresDatabase(postgres));
  }

  /**
   * Books a batch of a node's ends and the place up to which its journal is now known, in one transaction. An
   * end that is booked already changes nothing, so shipping a journal again is safe: its receipt is there,
   * or, where that is deleted by now, its place in the journal is known. Charges leave what is granted and
   * enter what is spent, so no counter's sum moves.
   */
  async ship(node: string, epoch: number | null, batch: readonly Unapplied[]): Promise<void> {
    if (batch.length === 0) return;
    await this.postgres.transaction(async (sql) => {
      if (epoch !== null) await holdLife(sql, node, epoch);
      await spend(sql, node, await insertEnds(sql, node, batch));
      const reached = JSON.stringify([...fileOffsets(batch)].map(([file, bytes]) => ({ file, bytes })));
      await sql`INSERT INTO shipped (node, file, bytes)
        SELECT ${node}, file, bytes FROM json_to_recordset(${reached}::text::json) AS row (file BIGINT, bytes BIGINT)
        ON CONFLICT (node, file) DO UPDATE SET bytes = greatest(shipped.bytes, excluded.bytes)`;
    }, URGENT);
  }

  /** How far each of the node's journal files was shipped, in bytes: what is below may be forgotten. */
  async reached(node: string): Promise<Map<number, number>> {
    return this.postgres.transaction(async (sql) => {
      const rows = await sql<{ file: bigint; bytes: bigint }[]>`
        SELECT file, bytes FROM shipped WHERE node = ${node} ${andReplicated(sql)}`;
      return new Map(rows.map(({ file, bytes }) => [Number(file), Number(bytes)]));
    });
  }

  /** Every commit is durable. */
  async mayForget(): Promise<boolean> {
    return true;
  }

  async forgetReachedBefore(node: string, file: number): Promise<void> {
    await this.postgres.query((sql) => sql`DELETE FROM shipped WHERE node = ${node} AND file < ${file}`);
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
    return this.books.locked(
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
/**
 * Ends a SELECT whose rows are acted upon as if they could not be lost. A commit that still waits for the
 * replica becomes visible when PostgreSQL restarts, and a transaction that only reads it waits for nothing;
 * one that locks it does.
 */
const andReplicated = (sql: TransactionSQL) => sql`FOR UPDATE`;

/** Unlike grants, ends may still be shipped for an epoch that was closed: they happened. */
async function holdLife(sql: TransactionSQL, node: string, epoch: number): Promise<void> {
  const [row] = await sql<{ epoch: bigint }[]>`SELECT epoch FROM nodes WHERE name = ${node} FOR KEY SHARE`;
  if (Number(row?.epoch) !== epoch) throw new EpochFenced(`epoch ${epoch} of ${node} is over`);
}

/** Returns those that were not there. */
export async function insertEnds(
  sql: TransactionSQL,
  node: string,
  batch: readonly PlacedEnd[],
): Promise<readonly TerminalRecord[]> {
  if (batch.length === 0) return [];
  const rows = JSON.stringify(batch.map(({ record, file, bytes }) => ({ ...rowOf(record), file, bytes })));
  const inserted = await sql<{ receipt: ReceiptId }[]>`
    INSERT INTO ends (receipt, at, node, balance_id, key_id, state, charged, written_off, lost, counters, allowances, body, host_cost)
    SELECT receipt, at, ${node}, balance_id, key_id, state, charged, written_off, lost, counters, allowances, body, host_cost
    FROM json_to_recordset(${rows}::text::json) AS row (receipt TEXT, at BIGINT, balance_id TEXT, key_id TEXT, state TEXT,
      charged BIGINT, written_off BIGINT, lost BIGINT, counters TEXT, allowances TEXT, body TEXT, host_cost BIGINT,
      file BIGINT, bytes BIGINT)
    WHERE NOT EXISTS (SELECT 1 FROM shipped WHERE node = ${node} AND shipped.file = row.file AND shipped.bytes >= row.bytes)
    ON CONFLICT (receipt) DO NOTHING RETURNING receipt`;
  const fresh = new Set(inserted.map(({ receipt }) => receipt));
  // Each once: deleted as it is found.
  return batch.map(({ record }) => record).filter(({ receipt }) => fresh.delete(receipt));
}

/** With its place in its node's journal, where that has one. */
type PlacedEnd = Pick<Unapplied, "record"> & Partial<Pick<Unapplied, "file" | "bytes">>;

function rowOf(end: TerminalRecord) {
  const { receipt, at, balance, key, state, charged, writtenOff, lost, allowances, body } = end;
  return {
    receipt,
    at,
    balance_id: balance,
    key_id: key,
    state,
    charged,
    written_off: writtenOff,
    lost,
    counters: countersColumn(end),
    allowances: allowances.join(" "),
    body,
    host_cost: end.hostCost ?? null,
  };
}

/** Moves the charges of ends that were not known before from what the node was granted to what is spent. */
export async function spend(
  sql: TransactionSQL,
  node: string,
  ends: readonly TerminalRecord[],
  at = systemClock.now(),
): Promise<void> {
  const sums = new Map<CounterId, number>();
  for (const end of ends) addSpending(sums, end);
  if (sums.size === 0) return;
  const rows = JSON.stringify([...sums].map(([id, amount]) => ({ id, amount })));
  const query = chargedCounters(POSTGRES_TABLES, sums, ends);
  // In one go: none needs what another answers. A query is sent when it is executed, or else awaited.
  const charging = [
    sql`INSERT INTO counters (id) SELECT id FROM json_to_recordset(${rows}::text::json) AS row (id TEXT)
      ORDER BY id ON CONFLICT (id) DO NOTHING`,
    sql`SELECT id FROM counters WHERE id IN (SELECT id FROM json_to_recordset(${rows}::text::json) AS row (id TEXT))
      ORDER BY id FOR UPDATE`,
    sql`UPDATE grants SET shipped = shipped + amount
      FROM json_to_recordset(${rows}::text::json) AS row (id TEXT, amount BIGINT) WHERE node = ${node} AND counter = id`,
    sql`UPDATE counters SET spent = spent + amount,
        reserved = reserved - CASE WHEN EXISTS (SELECT FROM grants WHERE node = ${node} AND counter = counters.id)
          THEN amount ELSE 0 END
      FROM json_to_recordset(${rows}::text::json) AS row (id TEXT, amount BIGINT) WHERE counters.id = row.id`,
  ].map((statement) => statement.execute());
  // Sent behind those, whose sums it reads.
  const read = query === null ? [] : (rowsOf(sql, query) as Promise<ChargedCounter[]>);
  const [charged] = await Promise.all([read, ...charging]);
  const events = recordingCharges(POSTGRES_TABLES, charged, ends, at);
  if (events.length > 0) await performAll(sql, flattened(events));
}
