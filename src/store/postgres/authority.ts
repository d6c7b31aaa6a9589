import type { TransactionSQL } from "bun";
import {
  type Authority,
  decide,
  type Grant,
  type Inquiry,
  LATE_MS,
  MOST_LATE,
  NOTHING_GRANTED,
  type SharedCounter,
  type Standing,
  type Statement,
} from "../../ledger/authority.ts";
import type { CounterId } from "../../ledger/counter.ts";
import { EpochFenced } from "../../ledger/membership.ts";
import { MAX_NANO_USD, type NanoUsd } from "../../units/usd.ts";
import { BatchQueue } from "../batch-queue.ts";
import { inNumbers, type Postgres, URGENT } from "./postgres.ts";

/**
 * The Authority on PostgreSQL. Statements that come together are settled in one transaction: it locks their
 * counters in the order of their ids, decides by the same rule as the simulator's authority, and writes what
 * changed.
 */
export class PostgresAuthority implements Authority {
  private readonly queue: BatchQueue<Statement, Grant>;

  constructor(
    private readonly postgres: Postgres,
    defer: (run: () => void) => void = setImmediate,
  ) {
    this.queue = new BatchQueue(
      (statements) => postgres.transaction((sql) => settleAll(postgres, sql, statements), URGENT),
      defer,
    );
  }

  settle(statement: Statement): Promise<Grant> {
    return this.queue.request(statement);
  }

  /** Forgets grants of counters whose window is over, if everything was shipped. */
  async retire(node: string, counters: readonly CounterId[]): Promise<void> {
    if (counters.length === 0) return;
    const ids = JSON.stringify(counters);
    await this.postgres.query(
      (sql) => sql`DELETE FROM grants WHERE node = ${node} AND granted = shipped
        AND counter IN (SELECT value FROM json_array_elements_text(${ids}::text::json))`,
    );
  }

  /**
   * The inquiries of late after what this node was granted, which it has not answered. Notifications arrive
   * sooner, where the database sends them and nothing happened to the connection.
   */
  async inquiries(node: string): Promise<Inquiry[]> {
    return this.postgres.query<Inquiry>(
      (sql) => sql`SELECT counter, inquiries AS inquiry FROM counters JOIN grants ON counter = id
        WHERE inquired_at > clock_timestamp() - ${`${LATE_MS} milliseconds`}::interval AND node = ${node}
          AND granted > shipped AND coalesce(heard, 0) < inquiries LIMIT ${MOST_LATE}`,
    );
  }
}

/** The channel on which nodes hear which counters somebody runs short of: `asker counter inquiry`. */
export const RECALLS = "gateway_recalls";

async function settleAll(
  postgres: Postgres,
  sql: TransactionSQL,
  statements: readonly Statement[],
): Promise<Grant[]> {
  const { ledger, epoch } = statements[0]!;
  await holdEpoch(sql, ledger, epoch);
  const ids = [...new Set(statements.map(({ counter }) => counter))].sort();
  const books = await lockBooks(sql, ledger, ids);
  const limits = await limitsOf(sql, ids);
  const grants = statements.map((statement) => {
    const { counter, limit } = statement;
    const set = Math.min(limit, limits.get(counter) ?? limit) as NanoUsd;
    return decide(books.get(counter)!, { ...statement, limit: set });
  });
  await write(sql, ledger, [...books.values()]);
  const short = statements.flatMap(({ counter, inquiry: awaited }, index) => {
    const { short: isShort, inquiry } = grants[index]!;
    return isShort ? [{ counter, awaited, inquiry }] : [];
  });
  if (short.length === 0) return grants;
  const others = await recall(postgres, sql, ledger, short);
  return grants.map((grant) => ({ ...grant, ...others.get(grant.counter) }));
}

/**
 * Closing an epoch takes the row for itself, so none is closed while statements of it are settled. Renewing
 * the lease does not wait for this.
 */
async function holdEpoch(sql: TransactionSQL, node: string, epoch: number): Promise<void> {
  const [row] = await sql<{ epoch: bigint; open: boolean }[]>`
    SELECT epoch, open FROM nodes WHERE name = ${node} FOR KEY SHARE`;
  if (row === undefined || Number(row.epoch) !== epoch || !row.open) {
    throw new EpochFenced(`epoch ${epoch} of ${node} is over`);
  }
}

/** A counter as it is locked. */
interface LockedCounter extends SharedCounter {
  readonly id: string;
  readonly before: NanoUsd;
  readonly inquiriesBefore: number;
}

async function lockBooks(
  sql: TransactionSQL,
  node: string,
  ids: readonly string[],
): Promise<Map<string, LockedCounter>> {
  const list = JSON.stringify(ids);
  await sql`INSERT INTO counters (id) SELECT value FROM json_array_elements_text(${list}::text::json)
    ORDER BY 1 ON CONFLICT (id) DO NOTHING`;
  const counters = await sql<Pick<LockedCounter, "id" | "credited" | "spent" | "reserved" | "inquiries">[]>`
    SELECT id, credited, spent, reserved, inquiries FROM counters
    WHERE id IN (SELECT value FROM json_array_elements_text(${list}::text::json)) ORDER BY id FOR UPDATE`;
  const grants = await sql<(Standing & { counter: string; shipped: number })[]>`
    SELECT counter, granted, shipped, used, number, coalesce(heard, 0) AS heard FROM grants
    WHERE node = ${node} AND counter IN (SELECT value FROM json_array_elements_text(${list}::text::json))`;
  const known = new Map(
    inNumbers(grants).map(({ counter, shipped, ...standing }) => [counter, { shipped, standing }]),
  );
  return new Map(
    inNumbers(counters).map((counter) => {
      const mine = known.get(counter.id) ?? { shipped: 0, standing: NOTHING_GRANTED };
      const before = { before: mine.standing.granted, inquiriesBefore: counter.inquiries };
      return [counter.id, { ...counter, ...mine, ...before }];
    }),
  );
}

/**
 * What owners last set, of keys and budgets, and keys of runs. A node may state what it knew before: a request that it admits
 * may have waited since, and what was granted to that would be spent by others, above the limit.
 */
async function limitsOf(sql: TransactionSQL, ids: readonly string[]): Promise<Map<string, number>> {
  const list = JSON.stringify(ids);
  const rows = await sql<{ id: string; set: number }[]>`
    WITH asked AS (
      SELECT value AS id, split_part(value, ':', 1) AS kind, split_part(value, ':', 2) AS subject
      FROM json_array_elements_text(${list}::text::json)
    )
    SELECT asked.id, max(coalesce(CASE kind WHEN 'day' THEN daily_limit WHEN 'month' THEN monthly_limit
        WHEN 'rpm' THEN rpm_limit ELSE tpm_limit END, ${MAX_NANO_USD})) AS set
      FROM asked JOIN keys ON keys.lineage = asked.subject
      WHERE kind IN ('day', 'month', 'rpm', 'tpm') AND state <> 'revoked' GROUP BY asked.id
    UNION ALL
    SELECT asked.id, cap FROM asked JOIN budgets ON budgets.id = asked.subject
      WHERE kind = 'budget' AND (split_part(asked.id, ':', 4) = '' OR split_part(asked.id, ':', 3) = period)
    UNION ALL
    SELECT asked.id, coalesce(CASE kind WHEN 'run' THEN cap ELSE calls END, ${MAX_NANO_USD}) FROM asked
      JOIN runs ON runs.balance_id = split_part(subject, '/', 1) AND runs.name = split_part(subject, '/', 2)
        AND started_at::text = split_part(asked.id, ':', 3)
      WHERE kind IN ('run', 'calls')`;
  return new Map(inNumbers(rows).map(({ id, set }) => [id, set]));
}

async function write(sql: TransactionSQL, node: string, books: readonly LockedCounter[]): Promise<void> {
  const rows = JSON.stringify(
    books.map(({ id, reserved, inquiries, standing }) => ({ id, reserved, inquiries, ...standing })),
  );
  await sql`INSERT INTO grants (node, counter, granted, used, number, heard)
    SELECT ${node}, id, granted, used, number, heard
    FROM json_to_recordset(${rows}::text::json)
      AS row (id TEXT, granted BIGINT, used BIGINT, number BIGINT, heard BIGINT)
    ON CONFLICT (node, counter) DO UPDATE
    SET granted = excluded.granted, used = excluded.used, number = excluded.number, heard = excluded.heard`;
  const isChanged = ({ before, standing, inquiriesBefore, inquiries }: LockedCounter): boolean =>
    before !== standing.granted || inquiriesBefore !== inquiries;
  if (!books.some(isChanged)) return;
  await sql`UPDATE counters SET reserved = row.reserved, inquiries = row.inquiries,
      inquired_at = CASE WHEN counters.inquiries < row.inquiries THEN clock_timestamp() ELSE inquired_at END
    FROM json_to_recordset(${rows}::text::json) AS row (id TEXT, reserved BIGINT, inquiries BIGINT)
    WHERE counters.id = row.id`;
}

/**
 * Asks the others for what they last said they do not use, and for answers to an inquiry. Says what may come
 * of that, for each counter that is short and that others hold something of.
 */
async function recall(
  postgres: Postgres,
  sql: TransactionSQL,
  node: string,
  short: readonly Short[],
): Promise<Map<CounterId, Others>> {
  const list = JSON.stringify(short.map(({ counter }) => counter));
  const rows = await sql<OthersRow[]>`
    SELECT counter, sum(granted - used)::bigint AS spare, min(heard) FILTER (WHERE granted > shipped) AS heard,
      sum(CASE WHEN heard IS NULL THEN granted - used ELSE granted - shipped END)::bigint AS open
    FROM grants JOIN nodes ON nodes.name = grants.node
    WHERE counter IN (SELECT value FROM json_array_elements_text(${list}::text::json))
      AND node <> ${node} AND lease_until > clock_timestamp() GROUP BY counter`;
  const found = new Map(inNumbers(rows).map((row) => [row.counter, row]));
  const others = new Map<CounterId, Others>();
  const asked: string[] = [];
  for (const { counter, awaited, inquiry } of short) {
    const row = found.get(counter);
    if (row === undefined) continue;
    const { spare, open, heard } = row;
    const answered = Math.min(inquiry, heard ?? inquiry);
    others.set(counter, { spare, open, answered });
    if (spare > 0 || answered < awaited) asked.push(`${node} ${counter} ${inquiry}`);
  }
  await postgres.notify(sql, RECALLS, asked);
  return others;
}

interface Short extends Pick<Grant, "counter" | "inquiry"> {
  /** The inquiry that requests there wait for. */
  readonly awaited: number;
}

type Others = Partial<Pick<Grant, "spare" | "open" | "answered">>;

interface OthersRow {
  readonly counter: CounterId;
  readonly spare: NanoUsd;
  readonly open: NanoUsd;
  /** Null where only gateways hold something that know of no inquiries. */
  readonly heard: number | null;
}
