import { Database, SQLiteError } from "bun:sqlite";
import { makePrivate } from "../data-folder.ts";
import { SQLITE_SCHEMA } from "../schema/migrations.ts";
import { migrationsFrom, type PresentSchema, versionOf } from "../schema/schema-version.ts";

/**
 * Opens the gateway's database and brings its tables up to date. Money is read as integers: every amount is
 * below 2^53 nano-dollars (units/usd), so plain numbers hold it exactly. With `FULL`, writes are durable when
 * their transaction returns; with `NORMAL`, when they are checkpointed, which is enough for what the journal
 * can replay. `waitMs` is how long a statement waits while somebody else writes, and the thread with it.
 */
export function openDatabase(
  path: string,
  synchronous: "FULL" | "NORMAL" = "FULL",
  waitMs = LOOP_WAIT_MS,
): Database {
  if (path !== ":memory:") makePrivate(path);
  const db = new Database(path, { strict: true });
  db.run(`PRAGMA busy_timeout = ${START_WAIT_MS}`);
  // Only a new database takes this; one that was made with other pages keeps them.
  db.run(`PRAGMA page_size = ${PAGE_BYTES}`);
  db.run("PRAGMA journal_mode = WAL");
  db.run(`PRAGMA synchronous = ${synchronous}`);
  db.run("PRAGMA foreign_keys = ON");
  db.run(`PRAGMA journal_size_limit = ${LOG_KEPT_BYTES}`);
  // Where a thread copies the log (see sqlite-maintenance.ts), this bound only matters while that cannot keep up.
  if (hasWalResetFix(sqliteVersion(db))) db.run(`PRAGMA wal_autocheckpoint = ${AUTOMATIC_CHECKPOINT_PAGES}`);
  migrate(db);
  db.run(`PRAGMA busy_timeout = ${waitMs}`);
  return db;
}

/**
 * The disk is full, read-only or broken, or others hold the file: the statement may well be carried out
 * later.
 */
export const diskRefused = (error: unknown): boolean =>
  error instanceof SQLiteError && /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN|BUSY)/.test(error.code ?? "");

/** The file is no database, or no longer one. */
export const isDamaged = (error: unknown): boolean =>
  error instanceof SQLiteError && /^SQLITE_(NOTADB|CORRUPT)/.test(error.code ?? "");

export const sqliteVersion = (db: Database): string =>
  db.query<{ version: string }, []>("SELECT sqlite_version() AS version").get()!.version;

/**
 * Whether one connection may copy the log into the database while another one writes. Before 3.51.3 a write
 * that begins the log again at the wrong moment could make later commits be taken for copied, and lose them
 * (sqlite.org/wal.html, "The WAL-Reset Bug"). Bun brings a newer SQLite, but on macOS it takes the system's.
 */
export function hasWalResetFix(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  return major * 1e6 + minor * 1e3 + patch >= 3_051_003;
}

/**
 * SQLite writes whole pages, with two calls into its log and one into the database. With its usual 4 KiB
 * pages, a busy gateway wrote twice as many pages for each request, and no fewer bytes.
 */
const PAGE_BYTES = 8_192;
/** While the database is being opened, nobody is served yet. */
const START_WAIT_MS = 5_000;
/**
 * The thread of sqlite-maintenance.ts writes for 3 ms at a time. If something else writes for longer, such as an
 * operator's tool, waiting would hold up every stream; instead, one change is refused and can be sent again.
 */
const LOOP_WAIT_MS = 1_000;
/** If the log grew beyond this during a long read, the excess is returned to the file system. */
const LOG_KEPT_BYTES = 64 * 1024 * 1024;
/** 256 MiB. */
const AUTOMATIC_CHECKPOINT_PAGES = 32_768;

function migrate(db: Database): void {
  const missing = migrationsFrom(presentSchema(db), SQLITE_SCHEMA);
  if (missing.length === 0) return;
  // All or none: a start that fails on the way leaves a database that the gateway of before still opens.
  db.transaction(() => {
    for (const migration of missing) db.run(migration);
    db.run(`PRAGMA user_version = ${versionOf(SQLITE_SCHEMA)}`);
    db.run("CREATE TABLE IF NOT EXISTS gateway_schema (oldest_user INTEGER NOT NULL) STRICT");
    db.run("DELETE FROM gateway_schema");
    db.run("INSERT INTO gateway_schema (oldest_user) VALUES (?)", [SQLITE_SCHEMA.oldestUser]);
  })();
}

export function presentSchema(db: Database): PresentSchema {
  const { user_version: version } = db.query<{ user_version: number }, []>("PRAGMA user_version").get()!;
  const isRecorded = db.query("SELECT 1 FROM sqlite_schema WHERE name = 'gateway_schema'").get() !== null;
  const row = isRecorded
    ? db.query<{ oldest_user: number }, []>("SELECT oldest_user FROM gateway_schema").get()
    : null;
  return { version, oldestUser: row?.oldest_user ?? null };
}
