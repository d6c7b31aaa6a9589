import { Database as Sqlite } from "bun:sqlite";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { DATABASE } from "../store/data-folder.ts";
import type { Database } from "../store/database/database.ts";
import { Postgres, presentSchema as presentInPostgres } from "../store/database/postgres.ts";
import { PostgresDatabase } from "../store/database/postgres-database.ts";
import { presentSchema as presentInSqlite } from "../store/database/sqlite.ts";
import { SqliteDatabase } from "../store/database/sqlite-database.ts";
import type { PresentSchema } from "../store/schema/schema-version.ts";
import type { StoreConfig } from "../store/store-config.ts";
import { systemClock } from "../units/clock.ts";
import { dataFolder } from "./connection.ts";
import type { CommandContext } from "./console.ts";

/** The store of a configuration, as a command reads it: nothing is changed, and no gateway has to run. */
interface PresentStore extends AsyncDisposable {
  readonly where: string;
  /** Null where SQLite has no file yet. */
  readonly database: Database | null;
  schema(): Promise<PresentSchema>;
  has(table: string): Promise<boolean>;
}

export function openStore(
  store: StoreConfig,
  context: Pick<CommandContext, "env" | "cwd">,
  deadlineMs: number,
): PresentStore {
  if (store.kind === "postgres") return inPostgres(store.url, deadlineMs);
  const where = join(resolve(context.cwd, dataFolder(context)), DATABASE);
  const db = existsSync(where) ? new Sqlite(where, { readonly: true }) : null;
  return {
    where,
    database: db && new SqliteDatabase(db),
    schema: async () => (db === null ? NONE : presentInSqlite(db)),
    has: async (table) => db?.query("SELECT 1 FROM sqlite_schema WHERE name = ?").get(table) != null,
    [Symbol.asyncDispose]: async () => db?.close(),
  };
}

function inPostgres(url: string, deadlineMs: number): PresentStore {
  const postgres = new Postgres({ url, connections: 1, deadlineMs }, systemClock);
  const has = (table: string) => hasTable(postgres, table);
  return {
    where: "The database",
    database: new PostgresDatabase(postgres),
    schema: async () => ((await has("gateway_schema")) ? postgres.transaction(presentInPostgres) : NONE),
    has,
    [Symbol.asyncDispose]: () => postgres.close(),
  };
}

export async function hasTable(postgres: Postgres, name: string): Promise<boolean> {
  const [table] = await postgres.query<{ made: boolean }>(
    (sql) => sql`SELECT to_regclass(${name}) IS NOT NULL AS made`,
  );
  return table!.made;
}

const NONE: PresentSchema = { version: 0, oldestUser: null };
