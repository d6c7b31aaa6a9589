import type { SQL, TransactionSQL } from "bun";
import {
  type NotedResult,
  part,
  type SqlDatabase,
  SqlPart,
  type Steps,
  sql,
  verbatim,
  type WriteOptions,
} from "../sql/statement.ts";
import { noteChanges } from "./changes.ts";
import { inNumbers, type Postgres } from "./postgres.ts";

/**
 * PostgreSQL for one node. A change writes its notice in the same transaction, and resolves once all nodes have taken
 * it (ledger/membership).
 */
export class PostgresStatements implements SqlDatabase {
  readonly forUpdate = part`FOR UPDATE`;
  readonly skipLocked = part`FOR UPDATE SKIP LOCKED`;
  readonly forReference = part`FOR KEY SHARE`;

  constructor(
    private readonly postgres: Postgres,
    private readonly acknowledged: (version: number) => Promise<void> = async () => {},
  ) {}

  query<Row>(...[texts, ...values]: Parameters<typeof part>): Promise<Row[]> {
    return this.postgres.query((client) => rows(client, new SqlPart(texts, values)) as Promise<Row[]>);
  }

  read<Result>(steps: () => Steps<Result>, deadlineMs?: number): Promise<Result> {
    const work = (client: TransactionSQL) => take(client, steps());
    return this.postgres.transaction(work, deadlineMs === undefined ? {} : { deadlineMs });
  }

  async write<Result>(
    steps: () => Steps<Result>,
    { committed, ...options }: WriteOptions<Result> = {},
  ): Promise<Result> {
    const result = await this.postgres.transaction((client) => take(client, steps()), options);
    committed?.(result);
    return result;
  }

  async change<Result>(
    steps: () => Steps<NotedResult<Result>>,
    isolation?: WriteOptions<Result>["isolation"],
  ): Promise<Result> {
    const work = async (client: TransactionSQL) => {
      const { result, changes } = await take(client, steps());
      return {
        result,
        version: changes.length === 0 ? null : await noteChanges(this.postgres, client, changes),
      };
    };
    const { result, version } = await this.postgres.transaction(
      work,
      isolation === undefined ? {} : { isolation },
    );
    if (version !== null) await this.acknowledged(version);
    return result;
  }

  *lock(name: string): Steps<void> {
    yield* sql`SELECT pg_advisory_xact_lock(hashtextextended(${name}, 0))`;
  }

  among(values: readonly string[]): SqlPart {
    return part`(SELECT value FROM json_array_elements_text(${JSON.stringify(values)}::text::json))`;
  }

  table(rows: readonly object[], columns: Readonly<Record<string, string>>): SqlPart {
    const typed = Object.entries(columns).map(([name, type]) => `${name} ${type}`);
    return part`(SELECT * FROM json_to_recordset(${JSON.stringify(rows)}::text::json) AS row (${verbatim(typed.join(", "))}))`;
  }
}

/** Takes the steps of a transaction. */
export async function take<Result>(client: SQL, steps: Steps<Result>): Promise<Result> {
  let step = steps.next();
  while (!step.done) step = steps.next(await rows(client, step.value));
  return step.value;
}

async function rows(client: SQL, statement: SqlPart): Promise<unknown[]> {
  const { text, values } = statement.written((number) => `$${number}`);
  return inNumbers(await client.unsafe(text, values));
}
