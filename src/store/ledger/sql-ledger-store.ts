import { ALL_BALANCES, balanceCounter, type CounterId, isBalanceCounter } from "../../ledger/counter.ts";
import type { CreditBooks } from "../../ledger/credit.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { BalanceId, ReceiptId } from "../../units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../units/usd.ts";
import { type Database, type SqlPart, sql, verbatim } from "../database/database.ts";
import { SqlCreditStore } from "./credits.ts";
import type { ReceiptFilter, ReceiptReader, StoredReceipt, StoredReceiptPage } from "./receipts.ts";

/** The books that several processes share: credits, what is spent, receipts, and the audit over all of it. */
export abstract class SqlLedgerStore<Books extends Database = Database>
  extends SqlCreditStore
  implements ReceiptReader, CreditBooks
{
  constructor(protected readonly books: Books) {
    super(books);
  }

  abstract receipts(...page: Parameters<ReceiptReader["receipts"]>): Promise<StoredReceiptPage>;
  /** Deletes some of the receipts from before then, and keeps their sums; returns how many. */
  abstract fold(before: EpochMs): Promise<number>;

  /** What is shipped; what nodes hold or have not shipped yet is in their memory. */
  async spent(id: CounterId): Promise<NanoUsd> {
    const [row] = await this.books.read<{ spent: NanoUsd }>`SELECT spent FROM counters WHERE id = ${id}`;
    return row?.spent ?? ZERO_USD;
  }

  /** Granted to these nodes, and not shipped as spent, of each counter. */
  async granted(nodes: readonly string[], counters: readonly CounterId[]): Promise<number[]> {
    const all = counters.includes(ALL_BALANCES) ? sql`OR counter LIKE 'balance:%'` : sql``;
    const rows = await this.books.rows<{ counter: CounterId; open: number }>(
      sql`SELECT counter, CAST(sum(granted - shipped) AS BIGINT) AS open FROM grants
        WHERE node IN ${this.books.among(nodes)} AND (counter IN ${this.books.among(counters)} ${all})
        GROUP BY counter`,
    );
    const open = new Map(rows.map((row) => [row.counter, row.open]));
    const ofBalances = rows.reduce((sum, row) => sum + (isBalanceCounter(row.counter) ? row.open : 0), 0);
    return counters.map((counter) => (counter === ALL_BALANCES ? ofBalances : (open.get(counter) ?? 0)));
  }

  async balance(id: BalanceId): Promise<{ credited: NanoUsd; spent: NanoUsd }> {
    const [row] = await this.books.read<{ credited: NanoUsd; spent: NanoUsd }>`
      SELECT credited, spent FROM counters WHERE id = ${balanceCounter(id)}`;
    return row ?? { credited: ZERO_USD, spent: ZERO_USD };
  }

  async receipt(id: ReceiptId): Promise<StoredReceipt | null> {
    return (await this.books.rows<StoredReceipt>(receiptOf(id)))[0] ?? null;
  }

  /**
   * Recomputes every sum from credits, ends, what is kept of ends that were deleted, and grants, at one moment. `drifts` are
   * the accounts whose running sum is not what those say; none, when the books are right.
   */
  async audit(): Promise<StoreAudit> {
    return auditFrom(await this.books.rows<AuditRow>(recomputing(this.books), AUDIT_MS));
  }

  /** What this node has shipped of each counter in its present epoch. */
  async shipped(node: string): Promise<Map<CounterId, number>> {
    const rows = await this.books.read<{ counter: CounterId; shipped: number }>`
      SELECT counter, shipped FROM grants WHERE node = ${node}`;
    return new Map(rows.map(({ counter, shipped }) => [counter, shipped]));
  }
}

export const receiptOf = (id: ReceiptId): SqlPart => sql`SELECT ${RECEIPT} FROM ends WHERE receipt = ${id}`;

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
export interface AuditRow {
  readonly sum: "drift" | Exclude<keyof StoreAudit, "drifts">;
  readonly account: string;
  readonly amount: string;
}

/** In one statement, as everything is at one moment. */
export function recomputing({ wordsOf }: Pick<Database, "wordsOf">): SqlPart {
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

export function auditFrom(rows: readonly AuditRow[]): StoreAudit {
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
