import type { SQL, TransactionSQL } from "bun";
import type { NotedChange } from "../nodes/changes.ts";
import {
  CommitConflict,
  type CommitOptions,
  type CommitStatement,
  type Committed,
  Database,
  flattened,
  type NumberedTable,
  type Planned,
  SqlPart,
  sql,
  verbatim,
} from "./database.ts";
import { inNumbers, isTaken, type Postgres, type WorkLimits } from "./postgres.ts";

/**
 * PostgreSQL for one node. A commit writes its notice in the same transaction, and resolves once all nodes have taken it
 * (ledger/membership).
 */
export class PostgresDatabase extends Database {
  readonly forUpdate = sql`FOR UPDATE`;
  readonly forReference = sql`FOR KEY SHARE`;

  constructor(
    private readonly postgres: Postgres,
    private readonly acknowledged: (version: number) => Promise<void> = async () => {},
  ) {
    super();
  }

  rows<Row>(statement: SqlPart, deadlineMs?: number): Promise<Row[]> {
    const limits = deadlineMs === undefined ? {} : { deadlineMs };
    return this.postgres.query((client) => rowsOf(client, statement) as Promise<Row[]>, limits);
  }

  protected async attempt(
    statements: readonly CommitStatement[],
    { changes = [], confirm, committed }: CommitOptions,
  ): Promise<Committed | null> {
    const work = async (client: TransactionSQL) => {
      if (confirm?.() === false) throw new CommitConflict();
      const rows = await performAll(client, statements);
      return {
        rows,
        version: changes.length === 0 ? null : await noteChanges(this.postgres, client, changes),
      };
    };
    try {
      const { rows, version } = await this.postgres.transaction(work);
      committed?.();
      return { rows, durable: async () => (version === null ? undefined : this.acknowledged(version)) };
    } catch (error) {
      if (error instanceof CommitConflict) return null;
      throw error;
    }
  }

  /** In one transaction: reads, and writes what is decided. `last` is its last step. */
  locked<Result>(
    { reads, decide }: Planned<Result>,
    last = async (_client: TransactionSQL, result: Result): Promise<Result> => result,
    limits: WorkLimits = {},
  ): Promise<Result> {
    return this.postgres.transaction(async (client) => {
      const { result, statements } = decide(await Promise.all(reads.map((read) => rowsOf(client, read))));
      await performAll(client, flattened(statements ?? []));
      return last(client, result);
    }, limits);
  }

  lock(name: string): readonly SqlPart[] {
    return [sql`SELECT pg_advisory_xact_lock(hashtextextended(${name}, 0))`];
  }

  member(name: string): SqlPart {
    return verbatim(`body::json ->> '${name}'`);
  }

  among(values: readonly string[]): SqlPart {
    return sql`(SELECT value FROM json_array_elements_text(${JSON.stringify(values)}::text::json))`;
  }

  wordsOf(column: string, amount: string): SqlPart {
    return verbatim(`SELECT split_part(word, '=', 1), 0, coalesce(nullif(split_part(word, '=', 2), '')::bigint, ${amount}), 0
      FROM ends, unnest(string_to_array(${column}, ' ')) AS word WHERE ${column} <> ''`);
  }

  readonly table = postgresTable;

  /**
   * Numbers become visible when their transactions commit, in any order. A transaction that takes one has locked the table before, so
   * once those that have it locked now have ended, every number taken by now is visible or was given up.
   */
  async settledThrough(table: NumberedTable): Promise<number | null> {
    const name = verbatim(table);
    // From before numbers were taken: see the schema.
    await this.commit([
      sql`UPDATE ${name} SET seq = nextval(${`${table}_seq`}::text::regclass)
        WHERE ctid = ANY (ARRAY(SELECT ctid FROM ${name} WHERE seq IS NULL LIMIT ${NUMBERED_AT_ONCE}))`,
    ]);
    const [taken] = await this.read<{
      last: number;
    }>`SELECT last_value AS last FROM ${verbatim(`${table}_seq`)}`;
    const writers = () =>
      this.read<{ writer: string }>`SELECT virtualtransaction AS writer FROM pg_locks
        WHERE locktype = 'relation' AND relation = ${table}::text::regclass AND granted
          AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    let open = new Set((await writers()).map(({ writer }) => writer));
    for (let rounds = 0; open.size > 0; rounds++) {
      if (rounds === MAX_ROUNDS) return null;
      await this.postgres.pause(RECHECK_MS);
      const still = await writers();
      open = new Set(still.map(({ writer }) => writer).filter((writer) => open.has(writer)));
    }
    return taken!.last;
  }
}

const NUMBERED_AT_ONCE = 1_000;
/** For transactions that write to end: some five seconds. */
const MAX_ROUNDS = 100;
const RECHECK_MS = 50;

function postgresTable(rows: readonly object[], columns: Readonly<Record<string, string>>): SqlPart {
  const typed = Object.entries(columns).map(([name, type]) => `${name} ${type}`);
  return sql`(SELECT * FROM json_to_recordset(${JSON.stringify(rows)}::text::json) AS row (${verbatim(typed.join(", "))}))`;
}

/** For statements inside somebody's transaction. */
export const POSTGRES_TABLES = { table: postgresTable };

/** In one go: none needs what another answers. */
export async function performAll(
  client: SQL,
  statements: readonly CommitStatement[],
): Promise<readonly number[]> {
  try {
    return await Promise.all(statements.map((statement) => perform(client, statement)));
  } catch (error) {
    throw isTaken(error) ? new CommitConflict() : error;
  }
}

async function perform(client: SQL, statement: CommitStatement): Promise<number> {
  const isBare = statement instanceof SqlPart;
  const { text, values } = (isBare ? statement : statement.part).written((number) => `$${number}`);
  const { count } = await client.unsafe(text, values);
  if (!isBare && count !== statement.rows) throw new CommitConflict();
  return count;
}

export async function rowsOf(client: SQL, statement: SqlPart): Promise<unknown[]> {
  const { text, values } = statement.written((number) => `$${number}`);
  return inNumbers(await client.unsafe(text, values));
}

/** The channel that wakes nodes when there are changes. */
export const CHANGES = "gateway_changes";

/** Records changes in the transaction that makes them. Returns the version that nodes have to reach. */
export async function noteChanges(
  postgres: Postgres,
  sql: TransactionSQL,
  changes: readonly NotedChange[],
): Promise<number> {
  const [row] = await sql<{ version: bigint }[]>`
    UPDATE latest_change SET version = version + ${changes.length} WHERE one = 1 RETURNING version`;
  const version = Number(row!.version);
  const rows = changes.map(({ balance, key, counters }, at) => ({
    version: version - changes.length + 1 + at,
    key_hash: key,
    balance_id: balance,
    counters: counters.join(" "),
  }));
  // Renewals of leases wait until this commits.
  await sql`INSERT INTO changes (version, at, key_hash, balance_id, counters)
    SELECT version, clock_timestamp(), key_hash, balance_id, counters
    FROM json_to_recordset(${JSON.stringify(rows)}::text::json)
      AS row (version BIGINT, key_hash TEXT, balance_id TEXT, counters TEXT)`;
  await postgres.notify(sql, CHANGES, [""]);
  return version;
}
