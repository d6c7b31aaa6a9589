import { Database as Connection } from "bun:sqlite";
import { type EpochMs, systemClock } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import { type Database, type SqlPart, sql, verbatim } from "../database/database.ts";
import { Postgres } from "../database/postgres.ts";
import { PostgresDatabase } from "../database/postgres-database.ts";
import { SqliteDatabase } from "../database/sqlite-database.ts";
import { seqBehind } from "../ledger/receipts.ts";

/** Receipts as the usage thread reads them, with what differs between the databases. */
export interface ReceiptSource {
  readonly db: Database;
  /** The column that orders receipts: SQLite has an index by their booking, PostgreSQL by when their requests began. */
  readonly order: SqlPart;
  /** The database adds receipts up, and not the thread: a month has too many to carry each of them out of PostgreSQL. */
  readonly addsUp: boolean;
  /** Columns of the newest receipts that match. SQLite looks at no more than `most` from before `until`, matching or not. */
  newest(columns: SqlPart, of: NewestReceipts): SqlPart;
  /** When the newest request began that SQLite does not look at; null in PostgreSQL, which finds all that match. */
  unread(of: NewestReceipts): SqlPart | null;
  /** The newest receipt behind so many: when its request began, and its place in the order as `last`. */
  behind(most: number): SqlPart;
  /** A number in a receipt's `tokens`. */
  tokens(kind: "input" | "cache_read" | "cache_write" | "output"): SqlPart;
  /** Rows; those of SQLite are read while they are gone through. */
  each<Row>(statement: SqlPart): Promise<Iterable<Row>>;
}

interface NewestReceipts {
  /** Null for everybody's. */
  readonly balanceId: BalanceId | null;
  readonly until: EpochMs | null;
  /** A condition on the columns. */
  readonly filter: SqlPart;
  readonly most: number;
}

export function sqliteReceipts(path: string): ReceiptSource {
  const connection = new Connection(path, { readonly: true });
  const before = ({ balanceId, until }: NewestReceipts) =>
    sql`FROM ends WHERE ${of(balanceId)} AND seq < ${seqBehind(until)} ORDER BY seq DESC`;
  return {
    db: new SqliteDatabase(connection),
    order: sql`seq`,
    addsUp: false,
    newest: (columns, receipts) => sql`SELECT ${columns}
      FROM (SELECT ${columns} ${before(receipts)} LIMIT ${receipts.most}) AS newest WHERE ${receipts.filter}`,
    unread: (receipts) => sql`SELECT at ${before(receipts)} LIMIT 1 OFFSET ${receipts.most}`,
    behind: (most) => sql`SELECT at, seq AS last FROM ends
      WHERE seq <= (SELECT max(seq) FROM ends) - ${most} ORDER BY seq DESC LIMIT 1`,
    tokens: (kind) => verbatim(`(body ->> '$.tokens.${kind}')`),
    async each<Row>(statement: SqlPart) {
      const { text, values } = statement.written(() => "?");
      return connection.query<Row, (string | number | null)[]>(text).iterate(...values);
    },
  };
}

export function postgresReceipts(url: string): ReceiptSource {
  const postgres = new Postgres({ url, connections: 1, deadlineMs: DEADLINE_MS }, systemClock);
  const db = new PostgresDatabase(postgres);
  return {
    db,
    order: sql`at`,
    addsUp: true,
    newest: (columns, { balanceId, filter, most }) =>
      sql`SELECT ${columns} FROM ends WHERE ${of(balanceId)} AND ${filter} ORDER BY at DESC LIMIT ${most}`,
    unread: () => null,
    behind: (most) => sql`SELECT at, at AS last FROM ends ORDER BY at DESC LIMIT 1 OFFSET ${most}`,
    tokens: (kind) => verbatim(`(body::json -> 'tokens' ->> '${kind}')::bigint`),
    each: (statement) => db.rows(statement),
  };
}

const of = (balance: BalanceId | null): SqlPart =>
  balance === null ? sql`TRUE` : sql`balance_id = ${balance}`;

/** No request begins later than any clock shows. */
export const endOf = (until: EpochMs | null): number => until ?? Number.MAX_SAFE_INTEGER;

/** Nobody waits longer for a chart; one connection that hangs would keep all of them waiting. */
const DEADLINE_MS = 30_000;
