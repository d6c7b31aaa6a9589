import type { SQL, TransactionSQL } from "bun";
import type { NotedChange } from "../nodes/changes.ts";
import {
  CommitConflict,
  type CommitOptions,
  type CommitStatement,
  type Committed,
  Database,
  EachRow,
  type NumberedTable,
  SqlPart,
  type Steps,
  sql,
  verbatim,
} from "./database.ts";
import { inNumbers, isTaken, type Postgres, type WorkLimits } from "./postgres.ts";

/**
 * PostgreSQL for one node. A commit writes its notice in the same transaction, and resolves once all nodes have taken it
 * (ledger/node-lease).
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
        version: changes.length === 0 ? null : await stepped(client, this.noting(changes)),
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

  transact<Result>(steps: () => Steps<Result>, limits: WorkLimits = {}): Promise<Result> {
    return this.postgres.transaction((client) => stepped(client, steps()), limits);
  }

  /**
   * Sends notifications on a channel when the transaction commits. None where the database does not support that, which would
   * fail the transaction: listeners also poll.
   */
  notifying(channel: string, words: readonly string[]): readonly SqlPart[] {
    if (this.postgres.isMute || words.length === 0) return [];
    return [sql`SELECT pg_notify(${channel}, value) FROM ${this.among(words)} AS words`];
  }

  /** Records changes in the transaction that makes them. Returns the version that nodes have to reach. */
  *noting(changes: readonly NotedChange[]): Steps<number> {
    const [latest] = yield [
      sql`UPDATE latest_change SET version = version + ${changes.length} WHERE one = 1 RETURNING version`,
    ];
    const [{ version }] = latest as readonly [{ readonly version: number }];
    const rows = changes.map(({ balance, key, counters }, at) => ({
      version: version - changes.length + 1 + at,
      key_hash: key,
      balance_id: balance,
      counters: counters.join(" "),
    }));
    // Renewals of leases wait until this commits.
    const inserting = sql`INSERT INTO changes (version, at, key_hash, balance_id, counters)
      SELECT version, clock_timestamp(), key_hash, balance_id, counters
      FROM ${this.table(rows, CHANGE_COLUMNS)} AS noted`;
    yield [inserting, ...this.notifying(CHANGES, [""])];
    return version;
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

const CHANGE_COLUMNS = {
  version: "BIGINT",
  key_hash: "TEXT",
  balance_id: "TEXT",
  counters: "TEXT",
} as const;

const NUMBERED_AT_ONCE = 1_000;
/** For transactions that write to end: some five seconds. */
const MAX_ROUNDS = 100;
const RECHECK_MS = 50;

function postgresTable(rows: readonly object[], columns: Readonly<Record<string, string>>): SqlPart {
  const typed = Object.entries(columns).map(([name, type]) => `${name} ${type}`);
  return sql`(SELECT * FROM json_to_recordset(${JSON.stringify(rows)}::text::json) AS row (${verbatim(typed.join(", "))}))`;
}

/** Inside somebody's transaction. */
async function stepped<Result>(client: SQL, steps: Steps<Result>): Promise<Result> {
  let step = steps.next();
  while (!step.done) step = steps.next(await Promise.all(step.value.map((one) => rowsOf(client, one))));
  return step.value;
}

function writingAll({ columns, rows, write, returnsChanged }: EachRow): SqlPart {
  const names = Object.keys(columns);
  const named = rows.map((row) => Object.fromEntries(names.map((name, at) => [name, row[at]])));
  const from = sql`FROM ${postgresTable(named, columns)} AS each_row`;
  const part = write({
    source: sql`SELECT ${verbatim(names.join(", "))} ${from} ORDER BY 1`,
    from,
    cell: (column) => verbatim(`each_row.${column}`),
  });
  return returnsChanged ? sql`${part} RETURNING ${verbatim(names[0]!)}` : part;
}

/** In one go: none needs what another answers. */
async function performAll(client: SQL, statements: readonly CommitStatement[]): Promise<readonly number[]> {
  try {
    return await Promise.all(statements.map(async (one) => (await perform(client, one)).count));
  } catch (error) {
    throw isTaken(error) ? new CommitConflict() : error;
  }
}

async function perform(
  client: SQL,
  statement: CommitStatement,
): Promise<unknown[] & { readonly count: number }> {
  const isBare = statement instanceof SqlPart;
  const { text, values } = (isBare ? statement : statement.part).written((number) => `$${number}`);
  const rows = await client.unsafe(text, values);
  if (!isBare && rows.count !== statement.rows) throw new CommitConflict();
  inNumbers(rows);
  return rows;
}

async function rowsOf(client: SQL, statement: CommitStatement | EachRow): Promise<unknown[]> {
  if (!(statement instanceof EachRow)) return perform(client, statement);
  return statement.rows.length === 0 ? [] : perform(client, writingAll(statement));
}

/** The channel that wakes nodes when there are changes. */
export const CHANGES = "gateway_changes";
