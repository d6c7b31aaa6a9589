import { ALL_BALANCES, balanceCounter, type CounterId, isBalanceCounter } from "../../ledger/counter.ts";
import type { CreditBooks } from "../../ledger/credit.ts";
import { type EpochMs, systemClock } from "../../units/clock.ts";
import type { BalanceId, ReceiptId } from "../../units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../units/usd.ts";
import { type Database, type SqlPart, sql, verbatim } from "../database/database.ts";
import { URGENT } from "../database/postgres.ts";
import type { EndStore } from "../journal/books.ts";
import type { Unapplied } from "../journal/journal.ts";
import { SqlCreditStore } from "./credits.ts";
import { forgettingFiles, type ReachedFile, reachedFiles, reachedFrom, shipping } from "./ends.ts";
import { folding } from "./fold.ts";
import type { ReceiptFilter, ReceiptReader, StoredReceipt, StoredReceiptPage } from "./receipts.ts";

/**
 * The books: credits, what is spent, receipts, and the audit over all of it. Ends of requests arrive from journals in batches;
 * credits are written directly, and durably.
 */
export abstract class SqlLedgerStore<Db extends Database = Database>
  extends SqlCreditStore<Db>
  implements ReceiptReader, CreditBooks
{
  constructor(
    db: Db,
    private readonly parts: LedgerStoreParts = {},
  ) {
    super(db, parts.onCredited);
  }

  abstract receipts(...page: Parameters<ReceiptReader["receipts"]>): Promise<StoredReceiptPage>;
  protected abstract checkpointNow(): Promise<boolean>;
  /** A slice of the oldest ends, from before then. */
  protected abstract oldest(columns: SqlPart, before: EpochMs): SqlPart;

  /** Whether everything that was booked survives a power cut; false while that cannot be had. */
  async checkpoint(): Promise<boolean> {
    return this.parts.slowWork ? this.parts.slowWork.checkpoint() : this.checkpointNow();
  }

  /** Where the ends in a node's journal are booked; null for the journal of the only process. */
  endsOf(node: string | null): EndStore {
    return {
      apply: (batch, epoch) => this.ship(node, epoch, batch),
      lastEpoch: async () => (node === null ? null : this.lastEpoch(node)),
      reached: () => this.reached(node),
      checkpoint: () => this.checkpoint(),
      forgetReachedBefore: (file) => this.forgetReachedBefore(node, file),
    };
  }

  /**
   * Books a batch of a node's ends, and the place up to which its journal is now known, all or nothing: see `shipping`. An end
   * that is booked already changes nothing, so shipping a journal again is safe. Throws EpochFenced.
   */
  async ship(node: string | null, epoch: number | null, batch: readonly Unapplied[]): Promise<void> {
    const at = (this.parts.now ?? systemClock.now)();
    if (batch.length > 0) await this.db.transact(() => shipping(this.db, { node, epoch, batch, at }), URGENT);
  }

  /** The node's latest epoch, to which its journal belongs; null for an unknown node. */
  async lastEpoch(node: string): Promise<number | null> {
    const [row] = await this.db.read<{ epoch: number }>`SELECT epoch FROM nodes WHERE name = ${node}`;
    return row?.epoch ?? null;
  }

  /**
   * How far each file of a node's journal is booked, in bytes: what is below may be forgotten. In PostgreSQL, a commit that
   * still waits for the replica becomes visible when it restarts, and a transaction that only reads it waits for nothing; one
   * that locks it does.
   */
  async reached(node: string | null = null): Promise<Map<number, number>> {
    return reachedFrom(await this.db.read<ReachedFile>`${reachedFiles(node)} ${this.db.forUpdate}`);
  }

  /** Forgets the offsets of files that are gone. */
  async forgetReachedBefore(node: string | null, file: number): Promise<void> {
    await this.db.commit([forgettingFiles(node, file)]);
  }

  /**
   * Deletes some of the receipts of requests that were admitted before `before`, and keeps what they come to. Returns how
   * many; none, when there are no more, or others are at them. Running sums stay as they are, because they cover everything.
   */
  async fold(before: EpochMs): Promise<number> {
    const { slowWork } = this.parts;
    if (slowWork) return slowWork.fold(before);
    return this.db.transact(() => folding(this.db, (columns) => this.oldest(columns, before)));
  }

  /** What is shipped; what nodes hold or have not shipped yet is in their memory. */
  spent(id: CounterId): NanoUsd | Promise<NanoUsd> {
    return this.sums(id).then(({ spent }) => spent);
  }

  balance(id: BalanceId): Promise<BookedSums> {
    return this.sums(balanceCounter(id));
  }

  private async sums(id: CounterId): Promise<BookedSums> {
    return (await this.db.rows<BookedSums>(readingSums(id)))[0] ?? NO_SUMS;
  }

  /** Granted to these nodes, and not shipped as spent, of each counter. */
  async granted(nodes: readonly string[], counters: readonly CounterId[]): Promise<number[]> {
    const all = counters.includes(ALL_BALANCES) ? sql`OR counter LIKE 'balance:%'` : sql``;
    const rows = await this.db.rows<{ counter: CounterId; open: number }>(
      sql`SELECT counter, CAST(sum(granted - shipped) AS BIGINT) AS open FROM grants
        WHERE node IN ${this.db.among(nodes)} AND (counter IN ${this.db.among(counters)} ${all})
        GROUP BY counter`,
    );
    const open = new Map(rows.map((row) => [row.counter, row.open]));
    const ofBalances = rows.reduce((sum, row) => sum + (isBalanceCounter(row.counter) ? row.open : 0), 0);
    return counters.map((counter) => (counter === ALL_BALANCES ? ofBalances : (open.get(counter) ?? 0)));
  }

  async receipt(id: ReceiptId): Promise<StoredReceipt | null> {
    const [row] = await this.db.read<StoredReceipt>`SELECT ${RECEIPT} FROM ends WHERE receipt = ${id}`;
    return row ?? null;
  }

  /**
   * Recomputes every sum from credits, ends, what is kept of ends that were deleted, and grants, at one moment. `drifts` are
   * the accounts whose running sum is not what those say; none, when the books are right.
   */
  async audit(): Promise<StoreAudit> {
    return auditFrom(await this.db.rows<AuditRow>(recomputing(this.db), AUDIT_MS));
  }

  /** What this node has shipped of each counter in its present epoch. */
  async shipped(node: string): Promise<Map<CounterId, number>> {
    const rows = await this.db.read<{ counter: CounterId; shipped: number }>`
      SELECT counter, shipped FROM grants WHERE node = ${node}`;
    return new Map(rows.map(({ counter, shipped }) => [counter, shipped]));
  }
}

interface LedgerStoreParts {
  readonly onCredited?: (balance: BalanceId, amount: NanoUsd) => void;
  readonly now?: () => EpochMs;
  /** A thread, or another process, for what takes long; null for none. */
  readonly slowWork?: Pick<SqlLedgerStore, "checkpoint" | "fold"> | null;
}

export interface BookedSums {
  readonly credited: NanoUsd;
  readonly spent: NanoUsd;
}

/** A counter as it is booked. */
export const readingSums = (id: CounterId): SqlPart =>
  sql`SELECT credited, spent FROM counters WHERE id = ${id}`;
export const NO_SUMS: BookedSums = { credited: ZERO_USD, spent: ZERO_USD };

export const RECEIPT = sql`receipt AS id, at, balance_id AS "balanceId", key_id AS "keyId", body`;

/** Whether an end is one of those that are looked for, whenever it began. */
export function matching(
  { member }: Pick<Database, "member">,
  { keyId, state, model, host, error, leastCost }: ReceiptFilter,
): SqlPart {
  const any = (value: string | null) => sql`CAST(${value} AS TEXT) IS NULL`;
  return sql`(${any(keyId)} OR key_id = ${keyId}) AND (${any(state)} OR state = ${state})
    AND charged >= ${leastCost ?? 0}
    AND (${any(model)} OR ${model} IN (${member("model")}, ${member("model_requested")}))
    AND (${any(host)} OR ${member("host")} = ${host})
    AND (${any(error)} OR ${member("error_code")} = ${error})`;
}

/** Receipts that one page looks at: some 5 ms of SQLite, and of the event loop there, when a model is filtered for. */
export const MAX_SCANNED = 2_000;

/** Amounts as text: sums may be above 2^53. */
interface AuditRow {
  readonly sum: "drift" | Exclude<keyof StoreAudit, "drifts">;
  readonly account: string;
  readonly amount: string;
}

/** In one statement, as everything is at one moment. */
function recomputing({ wordsOf }: Pick<Database, "wordsOf">): SqlPart {
  const sums = ["credited", "spent", "reserved"];
  const differ = sums.map((sum) => `coalesce(lines.${sum}, 0) - coalesce(counters.${sum}, 0)`);
  return sql`WITH lines AS (
      SELECT account, sum(credited) AS credited, sum(spent) AS spent, sum(reserved) AS reserved FROM (
        SELECT 'balance:' || balance_id AS account, amount AS credited, 0 AS spent, 0 AS reserved FROM credits
        UNION ALL SELECT 'balance:' || balance_id, 0, charged, 0 FROM ends
        UNION ALL ${wordsOf("counters", "charged")}
        UNION ALL ${wordsOf("allowances", "1")}
        UNION ALL SELECT 'balance:' || balance_id, 0, charged, 0 FROM folded
        UNION ALL SELECT counter, 0, spent, 0 FROM folded_counters
        UNION ALL SELECT counter, 0, 0, granted - shipped FROM grants
      ) AS parts GROUP BY account
    ), totals AS (
      SELECT charged, lost, written_off FROM ends UNION ALL SELECT charged, lost, written_off FROM folded)
    SELECT 'drift' AS sum, coalesce(lines.account, counters.id) AS account,
      CAST(${verbatim(differ.map((by) => `abs(${by})`).join(" + "))} AS TEXT) AS amount
    FROM lines FULL JOIN counters ON counters.id = lines.account
    WHERE ${verbatim(differ.map((by) => `${by} <> 0`).join(" OR "))}
    UNION ALL SELECT 'credits', '', CAST(coalesce(sum(amount), 0) AS TEXT) FROM credits
    UNION ALL SELECT 'charges', '', CAST(coalesce(sum(charged), 0) AS TEXT) FROM totals
    UNION ALL SELECT 'losses', '', CAST(coalesce(sum(lost), 0) AS TEXT) FROM totals
    UNION ALL SELECT 'writeOffs', '', CAST(coalesce(sum(written_off), 0) AS TEXT) FROM totals`;
}

function auditFrom(rows: readonly AuditRow[]): StoreAudit {
  const total = (name: AuditRow["sum"]) => BigInt(rows.find(({ sum }) => sum === name)!.amount);
  return {
    credits: total("credits"),
    charges: total("charges"),
    losses: total("losses"),
    writeOffs: total("writeOffs"),
    drifts: rows.flatMap(({ sum, account, amount }) =>
      sum === "drift" ? [{ account, driftNano: BigInt(amount) }] : [],
    ),
  };
}

/** Every sum of the books, recomputed. `drifts` are the accounts whose running sum is not that. */
export interface StoreAudit {
  readonly credits: bigint;
  readonly charges: bigint;
  readonly losses: bigint;
  readonly writeOffs: bigint;
  readonly drifts: readonly Drift[];
}

export interface Drift {
  readonly account: string;
  readonly driftNano: bigint;
}

/** An audit reads everything, in so many milliseconds at most. */
export const AUDIT_MS = 600_000;
