import type { TransactionSQL } from "bun";
import { balanceCounter, type CounterId } from "../../ledger/counter.ts";
import type { Credit, CreditClaim, Debit, TooMuch } from "../../ledger/credit.ts";
import { EpochFenced } from "../../ledger/membership.ts";
import type { TerminalRecord } from "../../ledger/record.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { BalanceId, ReceiptId } from "../../units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../units/usd.ts";
import { AUDIT_MS, type Drift, type StoreAudit } from "../audit.ts";
import { addSpending, countersColumn, type Fold, foldEnds, type SummedEnd } from "../fold.ts";
import { places, type Unapplied } from "../journal/journal.ts";
import type { ReceiptFilter, StoredReceipt, StoredReceiptPage } from "../receipts.ts";
import { creditSteps, creditsOf, debitSteps, decideClaim, entryOf, openClaims } from "../sql/credits.ts";
import { part } from "../sql/statement.ts";
import { inNumbers, type Postgres, URGENT } from "./postgres.ts";
import { PostgresStatements } from "./statements.ts";

/**
 * The books in PostgreSQL: what nodes ship of their journals, credits, receipts, and the audit over all of
 * it.
 */
export class PostgresLedgerStore {
  private readonly statements: PostgresStatements;

  constructor(private readonly postgres: Postgres) {
    this.statements = new PostgresStatements(postgres);
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
      const reached = JSON.stringify([...places(batch)].map(([file, bytes]) => ({ file, bytes })));
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

  /** What is shipped; what nodes hold or have not shipped yet is in their memory. */
  async spent(id: CounterId): Promise<NanoUsd> {
    const [row] = await this.postgres.query<{ spent: NanoUsd }>(
      (sql) => sql`SELECT spent FROM counters WHERE id = ${id}`,
    );
    return row?.spent ?? ZERO_USD;
  }

  async balance(id: BalanceId): Promise<{ credited: NanoUsd; spent: NanoUsd }> {
    const [row] = await this.postgres.query<{ credited: NanoUsd; spent: NanoUsd }>(
      (sql) => sql`SELECT credited, spent FROM counters WHERE id = ${balanceCounter(id)}`,
    );
    return row ?? { credited: ZERO_USD, spent: ZERO_USD };
  }

  /** As `creditSteps`. Durable when it resolves, as is what a debit has done. */
  credit(credit: Credit): Promise<Credit | null> {
    return this.statements.write(() => creditSteps(this.statements, credit));
  }

  debit(debit: Debit): Promise<Credit | TooMuch> {
    return this.statements.write(() => debitSteps(this.statements, debit));
  }

  claims(after: string, limit: number): Promise<readonly CreditClaim[]> {
    return this.statements.read(() => openClaims(after, limit));
  }

  decideClaim(claim: CreditClaim, at: EpochMs): Promise<NanoUsd | null> {
    return this.statements.write(() => decideClaim(this.statements, claim, at));
  }

  entry(idempotencyKey: string): Promise<Credit | null> {
    return this.statements.read(() => entryOf(this.statements, idempotencyKey));
  }

  credits(balance: BalanceId, limit: number): Promise<Credit[]> {
    return this.statements.read(() => creditsOf(balance, limit));
  }

  async receipt(id: ReceiptId): Promise<StoredReceipt | null> {
    const [receipt = null] = await this.statements.query<StoredReceipt>`
      SELECT ${RECEIPT} FROM ends WHERE receipt = ${id}`;
    return receipt;
  }

  /**
   * Newest first, from below `before`. A filter may match little, so only so many are looked at: a page can
   * be short, even empty, and still say where the next one begins.
   */
  async receipts(
    balance: BalanceId,
    { keyId, model, state }: ReceiptFilter,
    limit: number,
    before: ReceiptId | null,
  ): Promise<StoredReceiptPage> {
    const rows = await this.statements.query<StoredReceipt & { matches: boolean }>`
      SELECT ${RECEIPT},
        (${keyId}::text IS NULL OR key_id = ${keyId}) AND (${state}::text IS NULL OR state = ${state})
          AND (${model}::text IS NULL OR ${model} IN (body::json ->> 'model', body::json ->> 'model_requested')) AS matches
      FROM ends
      WHERE balance_id = ${balance} AND (at, receipt) < (
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
  async fold(before: EpochMs): Promise<number> {
    return this.postgres.transaction(async (sql) => {
      const rows = await sql<SummedEnd[]>`
        SELECT receipt, at, balance_id, charged, written_off, lost, counters, allowances FROM ends
        WHERE at < ${before} AND NOT EXISTS (SELECT 1 FROM holds WHERE holds.receipt = ends.receipt) ORDER BY at LIMIT ${FOLD_SLICE} FOR UPDATE SKIP LOCKED`;
      if (rows.length === 0) return 0;
      await keepFold(sql, foldEnds(inNumbers(rows)));
      const receipts = JSON.stringify(rows.map(({ receipt }) => receipt));
      await sql`DELETE FROM ends
        WHERE receipt IN (SELECT value FROM json_array_elements_text(${receipts}::text::json))`;
      return rows.length;
    });
  }

  /**
   * Recomputes every sum from credits, ends, what is kept of ends that were deleted, and grants, at one
   * moment.
   */
  async audit(): Promise<StoreAudit> {
    return this.postgres.transaction(
      async (sql) => {
        const [sums] = await sql<Record<"credits" | "charges" | "losses" | "writeoffs", string>[]>`
        SELECT (SELECT coalesce(sum(amount), 0) FROM credits) AS credits, coalesce(sum(charged), 0) AS charges,
          coalesce(sum(lost), 0) AS losses, coalesce(sum(written_off), 0) AS writeoffs
        FROM (SELECT charged, lost, written_off FROM ends UNION ALL SELECT charged, lost, written_off FROM folded) AS lines`;
        const drifts = await sql<{ account: string; drift: string }[]>`
        WITH said AS (
          SELECT account, sum(credited) AS credited, sum(spent) AS spent, sum(reserved) AS reserved FROM (
            SELECT 'balance:' || balance_id AS account, amount AS credited, 0 AS spent, 0 AS reserved FROM credits
            UNION ALL SELECT 'balance:' || balance_id, 0, charged, 0 FROM ends
            UNION ALL SELECT split_part(word, '=', 1), 0, coalesce(nullif(split_part(word, '=', 2), '')::bigint, charged), 0
              FROM ends, unnest(string_to_array(counters, ' ')) AS word WHERE counters <> ''
            UNION ALL SELECT unnest(string_to_array(allowances, ' ')), 0, 1, 0 FROM ends WHERE allowances <> ''
            UNION ALL SELECT 'balance:' || balance_id, 0, charged, 0 FROM folded
            UNION ALL SELECT counter, 0, spent, 0 FROM folded_counters
            UNION ALL SELECT counter, 0, 0, granted - shipped FROM grants
          ) AS lines GROUP BY account
        )
        SELECT coalesce(said.account, counters.id) AS account,
          abs(coalesce(said.credited, 0) - coalesce(counters.credited, 0))
          + abs(coalesce(said.spent, 0) - coalesce(counters.spent, 0))
          + abs(coalesce(said.reserved, 0) - coalesce(counters.reserved, 0)) AS drift
        FROM said FULL JOIN counters ON counters.id = said.account
        WHERE coalesce(said.credited, 0) <> coalesce(counters.credited, 0)
          OR coalesce(said.spent, 0) <> coalesce(counters.spent, 0)
          OR coalesce(said.reserved, 0) <> coalesce(counters.reserved, 0)`;
        return {
          credits: BigInt(sums!.credits),
          charges: BigInt(sums!.charges),
          losses: BigInt(sums!.losses),
          writeOffs: BigInt(sums!.writeoffs),
          drifts: drifts.map(({ account, drift }): Drift => ({ account, driftNano: BigInt(drift) })),
        };
      },
      { isolation: "repeatable read", deadlineMs: AUDIT_MS },
    );
  }

  /** What this node has shipped of each counter in its present epoch. */
  async shipped(node: string): Promise<Map<CounterId, number>> {
    const rows = await this.postgres.query<{ counter: CounterId; shipped: number }>(
      (sql) => sql`SELECT counter, shipped FROM grants WHERE node = ${node}`,
    );
    return new Map(rows.map(({ counter, shipped }) => [counter, shipped]));
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

/** Receipts that one page looks at. */
const MAX_SCANNED = 2_000;

const RECEIPT = part`receipt AS id, at, balance_id AS "balanceId", key_id AS "keyId", body`;

/** In the order of the names: two nodes that fold at once wait for each other. */
async function keepFold(sql: TransactionSQL, { months, counters }: Fold): Promise<void> {
  const monthRows = JSON.stringify(months);
  await sql`INSERT INTO folded (balance_id, month, receipts, charged, written_off, lost)
    SELECT * FROM json_to_recordset(${monthRows}::text::json)
      AS row (balance_id TEXT, month BIGINT, receipts BIGINT, charged BIGINT, written_off BIGINT, lost BIGINT)
    ORDER BY balance_id, month
    ON CONFLICT (balance_id, month) DO UPDATE SET receipts = folded.receipts + excluded.receipts,
      charged = folded.charged + excluded.charged, written_off = folded.written_off + excluded.written_off,
      lost = folded.lost + excluded.lost`;
  const counterRows = JSON.stringify([...counters].map(([counter, spent]) => ({ counter, spent })));
  await sql`INSERT INTO folded_counters (counter, spent)
    SELECT * FROM json_to_recordset(${counterRows}::text::json) AS row (counter TEXT, spent BIGINT) ORDER BY counter
    ON CONFLICT (counter) DO UPDATE SET spent = folded_counters.spent + excluded.spent`;
}

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
    INSERT INTO ends (receipt, at, node, balance_id, key_id, state, charged, written_off, lost, counters, allowances, body)
    SELECT receipt, at, ${node}, balance_id, key_id, state, charged, written_off, lost, counters, allowances, body
    FROM json_to_recordset(${rows}::text::json) AS row (receipt TEXT, at BIGINT, balance_id TEXT, key_id TEXT, state TEXT,
      charged BIGINT, written_off BIGINT, lost BIGINT, counters TEXT, allowances TEXT, body TEXT, file BIGINT, bytes BIGINT)
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
  };
}

/** Moves the charges of ends that were not known before from what the node was granted to what is spent. */
export async function spend(
  sql: TransactionSQL,
  node: string,
  ends: readonly TerminalRecord[],
): Promise<void> {
  const sums = new Map<CounterId, number>();
  for (const end of ends) addSpending(sums, end);
  if (sums.size === 0) return;
  const rows = JSON.stringify([...sums].map(([id, amount]) => ({ id, amount })));
  // In one go: none needs what another answers.
  await Promise.all([
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
  ]);
}
