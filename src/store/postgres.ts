import { SQL, type TransactionSQL } from "bun";
import type { Clock } from "../units/clock.ts";
import { POSTGRES_MIGRATIONS } from "./postgres-migrations.ts";

/** PostgreSQL cannot be reached, or did not answer in time. Whatever was asked may have happened. */
class StoreUnreachable extends Error {
  override name = "StoreUnreachable";
}

/**
 * The pool of connections that a node keeps. Work is one transaction with a deadline: a network that swallows packets lets a
 * query hang for minutes, and with it the connection, so the whole client is replaced when a deadline passes.
 * Transactions that lose against others (serialization, deadlock) are run again.
 */
export class Postgres {
  private client: SQL;

  constructor(
    private readonly options: PostgresOptions,
    private readonly clock: Pick<Clock, "after">,
  ) {
    this.client = connect(options);
  }

  /** Runs `work` in one transaction, once it is won; `work` may be run more than once. */
  async transaction<Result>(work: (sql: TransactionSQL) => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.inTime((client) => client.begin(work));
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || !LOST_TO_OTHERS.has(sqlState(error) ?? "")) throw error;
      }
    }
  }

  /** One statement on any connection. */
  query<Row>(ask: (sql: SQL) => Promise<Row[]>): Promise<Row[]> {
    return this.inTime(ask);
  }

  async close(): Promise<void> {
    await this.client.close({ timeout: CLOSE_S });
  }

  private async inTime<Result>(work: (client: SQL) => Promise<Result>): Promise<Result> {
    const { client } = this;
    const late = Promise.withResolvers<never>();
    const timer = this.clock.after(this.options.deadlineMs, () => {
      late.reject(new StoreUnreachable(`PostgreSQL did not answer within ${this.options.deadlineMs} ms`));
      this.replace(client);
    });
    try {
      return await Promise.race([work(client), late.promise]);
    } catch (error) {
      throw sqlState(error) === null || GOING_DOWN.test(sqlState(error)!) ? unreachable(error) : error;
    } finally {
      timer.cancel();
    }
  }

  private replace(client: SQL): void {
    if (this.client !== client) return;
    this.client = connect(this.options);
    void client.close({ timeout: 0 }).catch(() => {});
  }
}

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database?sslmode=…` */
  readonly url: string;
  readonly connections: number;
  readonly deadlineMs: number;
}

const CLOSE_S = 2;
const MAX_ATTEMPTS = 10;
/** serialization_failure and deadlock_detected. */
const LOST_TO_OTHERS = new Set(["40001", "40P01"]);
/** Connection lost, resources exhausted, operator intervention: nothing that the statement did. */
const GOING_DOWN = /^(08|53|57P)/;

/** The five characters by which PostgreSQL names an error; null when the error did not come from a server. */
function sqlState(error: unknown): string | null {
  const { errno } = (error ?? {}) as { errno?: unknown };
  return typeof errno === "string" && errno.length === 5 ? errno : null;
}

function unreachable(error: unknown): unknown {
  if (error instanceof StoreUnreachable) return error;
  const { code } = (error ?? {}) as { code?: unknown };
  // What is not the client's own error is ours, thrown inside the transaction.
  if (typeof code !== "string" || !code.startsWith("ERR_POSTGRES_")) return error;
  return new StoreUnreachable(`PostgreSQL cannot be reached: ${code}`, { cause: error });
}

function connect({ url, connections }: PostgresOptions): SQL {
  return new SQL(url, { max: connections, connectionTimeout: CONNECT_S, idleTimeout: 0 });
}

const CONNECT_S = 5;

/** Brings the schema up to date; nodes that start together wait for each other. */
export async function migratePostgres(postgres: Postgres): Promise<void> {
  await postgres
    .query(
      (sql) => sql`CREATE TABLE IF NOT EXISTS gateway_schema (one INT PRIMARY KEY, version BIGINT NOT NULL)`,
    )
    .catch(
      // Two nodes that create the table at once: one of them loses in the catalogue, and the table is there.
      (error) => {
        if (!["23505", "42P07"].includes(sqlState(error) ?? "")) throw error;
      },
    );
  await postgres.query(
    (sql) => sql`INSERT INTO gateway_schema (one, version) VALUES (1, 0) ON CONFLICT (one) DO NOTHING`,
  );
  await postgres.transaction(async (sql) => {
    const [row] = await sql<
      { version: string }[]
    >`SELECT version FROM gateway_schema WHERE one = 1 FOR UPDATE`;
    const present = Number(row!.version);
    if (present > POSTGRES_MIGRATIONS.length) {
      throw new Error(
        `the database was written by a newer gateway (schema ${present}, this one knows ${POSTGRES_MIGRATIONS.length}): upgrade the gateway`,
      );
    }
    for (const migration of POSTGRES_MIGRATIONS.slice(present)) await sql.unsafe(migration).simple();
    await sql`UPDATE gateway_schema SET version = ${POSTGRES_MIGRATIONS.length} WHERE one = 1`;
  });
}
