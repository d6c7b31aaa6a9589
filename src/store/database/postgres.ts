import { lookup } from "node:dns/promises";
import { SQL, type TransactionSQL } from "bun";
import { type Clock, pause, type Timer } from "../../units/clock.ts";
import { StoreContended, StoreUnreachable } from "../../units/errors/bookkeeping.ts";
import { FairQueue } from "../../units/fair-queue.ts";
import { POSTGRES_SCHEMA } from "../schema/migrations.ts";
import { migrationsFrom, type PresentSchema, versionOf } from "../schema/schema-version.ts";

/**
 * A node's pool of connections. All work runs in transactions with a deadline: on a network that swallows
 * packets, a query hangs for minutes, and its connection with it, so the whole client is replaced when a
 * deadline passes. Transactions that lose against others (serialization, deadlock) are retried. Work waits for a
 * connection here and not in Bun's pool, where its deadline would pass although the database answers.
 */
export class Postgres {
  private client: SQL;
  private listener: SQL | null = null;
  private channels: Channels | null = null;
  private nextProbe: Timer | null = null;
  /** The database delivers no notifications. */
  isMute = false;
  private freeConnections: number;
  private readonly queue: FairQueue<true>;
  /** Work that the database has answered, whatever it answered. */
  private answered = 0;

  constructor(
    private readonly options: PostgresOptions,
    private readonly clock: Pick<Clock, "after">,
  ) {
    this.client = this.connect(options.connections);
    this.freeConnections = options.connections;
    this.queue = new FairQueue(options.maxWaiting ?? MAX_WAITING, clock, RANKS);
  }

  /**
   * Runs `work` in one transaction, once it is won; `work` may be run more than once. At `read committed`,
   * whatever the database's own default is, who waited for a lock sees what was committed meanwhile.
   */
  transaction<Result>(
    work: (sql: TransactionSQL) => Promise<Result>,
    { isolation = "read committed", ...limits }: TransactionOptions = {},
  ): Promise<Result> {
    return this.untilWon((client) => client.begin(`ISOLATION LEVEL ${isolation}`, work), limits);
  }

  pause(ms: number): Promise<void> {
    return pause(this.clock, ms);
  }

  /** One statement on any connection. */
  async query<Row>(run: (sql: SQL) => Promise<Row[]>, limits: WorkLimits = {}): Promise<Row[]> {
    return inNumbers(await this.untilWon(run, limits));
  }

  /**
   * Finds out whether the database delivers notifications; not every database that speaks this protocol does.
   */
  async probeNotify(): Promise<void> {
    try {
      await this.query((sql) => sql`SELECT pg_notify(${PROBE_CHANNEL}, '')`);
    } catch (error) {
      if (error instanceof StoreUnreachable) throw error;
      this.isMute = true;
    }
  }

  /**
   * Listens on channels over a connection of its own, which reconnects by itself. Notifications sent while it
   * is gone are missed, so listeners also poll.
   */
  listen(channels: Channels): void {
    if (this.isMute) return;
    void this.listener?.close({ timeout: 0 }).catch(() => {});
    const listener = this.connect(1);
    this.listener = listener;
    this.channels = channels;
    const listening = Object.entries(channels).map(([channel, onNotification]) =>
      listener.listen(channel, onNotification),
    );
    // Only a connection that was once established reconnects by itself.
    Promise.all(listening).then(
      () => this.probeLater(listener),
      () => this.listenAgain(listener, LISTEN_AGAIN_MS),
    );
  }

  /** There may be no notification for days, so only a query shows whether the connection still works. */
  private probeLater(listener: SQL): void {
    this.nextProbe = this.clock.after(PROBE_MS, async () => {
      if (this.listener !== listener) return;
      const late = this.clock.after(ANSWER_MS, () => this.listenAgain(listener, 0));
      try {
        const probe = await listener.listen(PROBE_CHANNEL, () => {});
        await probe.unlisten();
        this.probeLater(listener);
      } catch {
        this.listenAgain(listener, LISTEN_AGAIN_MS);
      } finally {
        late.cancel();
      }
    });
  }

  private listenAgain(listener: SQL, afterMs: number): void {
    this.clock.after(afterMs, () => {
      if (this.listener === listener) this.listen(this.channels!);
    });
  }

  async close(): Promise<void> {
    void this.listener?.close({ timeout: 0 }).catch(() => {});
    this.listener = null;
    this.nextProbe?.cancel();
    await this.client.close({ timeout: CLOSE_S });
  }

  private async untilWon<Result>(
    work: (client: SQL) => Promise<Result>,
    { deadlineMs = this.options.deadlineMs, urgent = false }: WorkLimits,
  ): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      await this.takeConnection(urgent);
      try {
        return await this.inTime(work, deadlineMs);
      } catch (error) {
        if (!LOST_TO_OTHERS.has(sqlState(error) ?? "")) throw error;
        if (attempt === MAX_ATTEMPTS) throw crowdedOut(error);
      } finally {
        this.freeConnections += 1;
        this.queue.invite(() => this.takeFreeConnection());
      }
      // Retrying at once would take the row again that the winner is still waiting for.
      await pause(this.clock, Math.min(2 ** attempt, LONGEST_PAUSE_MS));
    }
  }

  private async takeConnection(urgent: boolean): Promise<void> {
    const rank = urgent ? 0 : RANKS - 1;
    if (this.queue.isFree(rank) && this.takeFreeConnection() !== null) return;
    const { answered } = this;
    const taken = await this.queue.wait(
      { turn: "", size: 0, rank },
      MAX_WAIT_DEADLINES * this.options.deadlineMs,
      null,
    );
    if (taken !== null) return;
    throw this.answered === answered && !this.queue.full
      ? new StoreUnreachable("PostgreSQL answered nobody meanwhile")
      : new StoreContended("too much work waits for a connection to PostgreSQL");
  }

  private takeFreeConnection(): true | null {
    if (this.freeConnections === 0) return null;
    this.freeConnections -= 1;
    return true;
  }

  private async inTime<Result>(work: (client: SQL) => Promise<Result>, deadlineMs: number): Promise<Result> {
    const { client } = this;
    const late = Promise.withResolvers<never>();
    const timer = this.clock.after(deadlineMs, () => {
      late.reject(new StoreUnreachable(`PostgreSQL did not answer within ${deadlineMs} ms`));
      this.replace(client);
    });
    try {
      const result = await Promise.race([work(client), late.promise]);
      this.answered += 1;
      return result;
    } catch (error) {
      if (sqlState(error) !== null) this.answered += 1;
      // A replica keeps answering reads: only new connections find the leader.
      if (sqlState(error) === READ_ONLY) this.replace(client);
      throw sqlState(error) === null || GOING_DOWN.test(sqlState(error)!) ? unreachable(error) : error;
    } finally {
      timer.cancel();
    }
  }

  private replace(client: SQL): void {
    if (this.client !== client) return;
    this.client = this.connect(this.options.connections);
    // What else is under way there has a deadline of its own: where the database is only loaded, it answers.
    void client.close({ timeout: this.options.deadlineMs / 1_000 }).catch(() => {});
    // What swallowed the answer may have swallowed that connection too.
    if (this.channels !== null) this.listen(this.channels);
  }

  private connect(max: number): SQL {
    return new SQL(this.options.url, {
      max,
      connectionTimeout: CONNECT_S,
      idleTimeout: 0,
      // Otherwise its whole numbers would be text, like what is text: see `inNumbers`.
      bigint: true,
      // A node that is cut off within a transaction must not keep rows locked. `statement_timeout` would also
      // end the wait for a replica, and call the commit a success.
      connection: { idle_in_transaction_session_timeout: this.options.deadlineMs },
    });
  }
}

/** Rows with their whole numbers as numbers: all of ours are below 2^53. */
export function inNumbers<Row>(rows: Row[]): Row[] {
  for (const row of rows as Record<string, unknown>[])
    for (const [name, value] of Object.entries(row)) if (typeof value === "bigint") row[name] = Number(value);
  return rows;
}

type Channels = Readonly<Record<string, (payload: string) => void>>;

interface TransactionOptions extends WorkLimits {
  readonly isolation?: "read committed" | "repeatable read" | "serializable";
}

export interface WorkLimits {
  /** From when it has a connection. */
  readonly deadlineMs?: number;
  /** All requests of the node depend on it, so it waits for nothing else. */
  readonly urgent?: boolean;
}

/** Leases, grants and what the journal commits: each one at a time. */
export const URGENT: WorkLimits = { urgent: true };

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database?sslmode=…` */
  readonly url: string;
  readonly connections: number;
  readonly deadlineMs: number;
  /** For a connection, each for at most three times `deadlineMs`. */
  readonly maxWaiting?: number;
}

const MAX_WAITING = 5_000;
/** A loaded database may have many to answer first. */
const MAX_WAIT_DEADLINES = 3;
/** Urgent work, and all other. */
const RANKS = 2;
const CLOSE_S = 2;
/** Together with the pauses between them, about half a second. */
const MAX_ATTEMPTS = 10;
const LONGEST_PAUSE_MS = 100;
/** serialization_failure, deadlock_detected, and unique_violation, which may come in place of the first. */
const LOST_TO_OTHERS = new Set(["40001", "40P01", "23505"]);
/**
 * Connection lost, a commit of which nobody knows whether it happened, resources exhausted, operator
 * intervention (a limit on how long statements take is one), a lock that was not waited for any longer, the
 * system beneath, a server that follows another, a transaction that was idle for too long: nothing that the
 * statement did.
 */
const GOING_DOWN = /^(08|40003|53|55P03|57|58|25006|25P03)/;
const READ_ONLY = "25006";

/** The five characters by which PostgreSQL names an error; null when the error did not come from a server. */
function sqlState(error: unknown): string | null {
  const { errno } = (error ?? {}) as { errno?: unknown };
  return typeof errno === "string" && errno.length === 5 ? errno : null;
}

/** A row is there already. */
export const isTaken = (error: unknown): boolean => sqlState(error) === TAKEN;
const TAKEN = "23505";

/**
 * A row that is there already may be an order that nobody can ever carry out; the others were only unlucky.
 */
function crowdedOut(error: unknown): unknown {
  const state = sqlState(error);
  if (state === TAKEN) return error;
  const message = `PostgreSQL let others go first ${MAX_ATTEMPTS} times (${state})`;
  return new StoreContended(message, { cause: error });
}

function unreachable(error: unknown): unknown {
  if (error instanceof StoreUnreachable) return error;
  const { code } = (error ?? {}) as { code?: unknown };
  // What is not the client's own error is ours, thrown inside the transaction.
  if (typeof code !== "string" || !code.startsWith("ERR_POSTGRES_")) return error;
  return new StoreUnreachable(`PostgreSQL cannot be reached: ${code}`, { cause: error });
}

const CONNECT_S = 5;
const LISTEN_AGAIN_MS = 2_000;
const PROBE_MS = 5_000;
const ANSWER_MS = 5_000;
/** A channel that nobody notifies. */
const PROBE_CHANNEL = "gateway_nothing";

/**
 * Brings the schema up to date and finds out what the database supports; nodes that start together wait for
 * each other.
 */
export async function migratePostgres(postgres: Postgres): Promise<void> {
  // If nodes create the table at once, some lose in the catalogue; if it is not there, the next
  // statement says so.
  await postgres
    .query(
      (sql) => sql`
        CREATE TABLE IF NOT EXISTS gateway_schema (one INT PRIMARY KEY, version BIGINT NOT NULL, oldest_user BIGINT)`,
    )
    .catch(() => {});
  await addOldestUser(postgres);
  await postgres.query(
    (sql) => sql`INSERT INTO gateway_schema (one, version) VALUES (1, 0) ON CONFLICT (one) DO NOTHING`,
  );
  const migrate = async (sql: TransactionSQL) => {
    await sql`SELECT 1 FROM gateway_schema WHERE one = 1 FOR UPDATE`;
    const missing = migrationsFrom(await presentSchema(sql), POSTGRES_SCHEMA);
    if (missing.length === 0) return;
    for (const migration of missing) await sql.unsafe(migration).simple();
    await sql`
      UPDATE gateway_schema SET version = ${versionOf(POSTGRES_SCHEMA)}, oldest_user = ${POSTGRES_SCHEMA.oldestUser}
      WHERE one = 1`;
  };
  await postgres.transaction(migrate, { deadlineMs: MIGRATION_MS });
  await postgres.probeNotify();
}

/**
 * Databases from before the first release lack the column. It is added in a statement of its own: within the transaction
 * that locks the row, nodes that start together would deadlock over the table.
 */
async function addOldestUser(postgres: Postgres): Promise<void> {
  const [column] = await postgres.query(
    (sql) => sql`
      SELECT 1 FROM pg_attribute
      WHERE attrelid = to_regclass('gateway_schema') AND attname = 'oldest_user' AND NOT attisdropped`,
  );
  if (column !== undefined) return;
  await postgres.query((sql) => sql`ALTER TABLE gateway_schema ADD COLUMN IF NOT EXISTS oldest_user BIGINT`);
}

/** By way of JSON, because databases from before the first release lack the column. */
export async function presentSchema(sql: SQL): Promise<PresentSchema> {
  const [row] = await sql<{ version: bigint; oldest_user: string | null }[]>`
    SELECT version, to_jsonb(gateway_schema) ->> 'oldest_user' AS oldest_user FROM gateway_schema WHERE one = 1`;
  if (row === undefined) return { version: 0, oldestUser: null };
  return {
    version: Number(row.version),
    oldestUser: row.oldest_user === null ? null : Number(row.oldest_user),
  };
}

/** Some read all receipts, and others that start meanwhile wait for that. */
export const MIGRATION_MS = 600_000;

/**
 * Why PostgreSQL does not let a gateway in, as a sentence for its operator, without the password. The start and
 * `doctor` both say it. Null for an error of another kind.
 */
export async function connectionMistake(url: string, error: unknown): Promise<string | null> {
  const { hostname, port, username, pathname } = new URL(url);
  const server = `PostgreSQL at ${hostname}:${port || 5432}`;
  const { errno, message = "" } = (error ?? {}) as { errno?: unknown; message?: string };
  switch (errno) {
    case "3D000":
      return `${server} has no database ${decodeURIComponent(pathname.slice(1)) || username}: create it, or correct \`store\`.`;
    case "28P01":
    case "28000":
      return `${server} does not let the user ${decodeURIComponent(username)} in: ${message}. Correct user, password or sslmode of \`store\`, or pg_hba.conf of the server.`;
    case "42501":
      return `${server} forbids what the gateway needs: ${message}. Let the user ${decodeURIComponent(username)} create tables in the database.`;
  }
  if (!(error instanceof StoreUnreachable)) return null;
  const name = hostname.replace(/^\[|\]$/g, "");
  const isKnown = await lookup(name).then(
    () => true,
    () => false,
  );
  if (!isKnown) return `No address is known of the host ${name} (DNS), which \`store\` names.`;
  const { cause } = error as { cause?: { code?: string; message?: string } };
  if (cause?.code === "ERR_POSTGRES_CONNECTION_REFUSED")
    return `Nothing accepts a connection at ${name}:${port || 5432}, which \`store\` names: start PostgreSQL there, or correct host and port.`;
  return `${server} does not serve: ${cause?.message ?? message}.`;
}
