import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { DATABASE, dataFolderPath } from "../store/data-folder.ts";
import { Postgres } from "../store/database/postgres.ts";
import { PostgresDatabase } from "../store/database/postgres-database.ts";
import { SqliteDatabase } from "../store/database/sqlite-database.ts";
import { exportFile, readRows } from "../store/export/export-file.ts";
import { EXPORT_KINDS, type ExportKind, SqlExportStore } from "../store/export/export-store.ts";
import { type ExportStorage, openStorage, readTarget, TARGET_FORMS } from "../store/export/export-target.ts";
import type { StoreConfig } from "../store/store-config.ts";
import { type EpochMs, epochMs, systemClock } from "../units/clock.ts";
import { validConfiguration } from "./config.ts";
import { type CommandContext, messageOf, show, table } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";

export interface ExportOnceOptions {
  readonly to: string;
  readonly since?: Date | undefined;
  readonly endpoint?: string | undefined;
  readonly json: boolean;
}

/** Writes all that the books have, or what began since a time, and leaves the cursors of the running export alone. */
export async function exportOnce(options: ExportOnceOptions, context: CommandContext): Promise<void> {
  const to = readTarget(options.to);
  if (to === null)
    throw new CommandFailure(EXIT.usage, `--to must be ${TARGET_FORMS}`, "A folder needs its whole path.");
  const { store } = await validConfiguration(context);
  const since = epochMs(options.since?.getTime() ?? 0);
  const books = openBooks(store, context);
  try {
    const storage = openStorage({ to, endpoint: options.endpoint ?? null }, context.env);
    const done: ExportedKind[] = [];
    for (const kind of EXPORT_KINDS) done.push(await exportKind(kind, since, books.store, storage));
    const rows = done.map(({ kind, rows, files, through }) => [kind, rows, files, through]);
    show(context, options.json, { data: done }, table(["kind", "rows", "files", "through"], rows));
  } catch (error) {
    throw new CommandFailure(
      EXIT.found,
      messageOf(error),
      "Files that were written are whole; run it again for the rest.",
    );
  } finally {
    await books.close();
  }
}

interface ExportedKind {
  readonly kind: ExportKind;
  readonly rows: number;
  readonly files: number;
  /** The number of the last row. */
  readonly through: number;
}

async function exportKind(
  kind: ExportKind,
  since: EpochMs,
  store: SqlExportStore,
  storage: ExportStorage,
): Promise<ExportedKind> {
  const done = { kind, rows: 0, files: 0, through: 0 };
  for (;;) {
    const through = await store.settledThrough(kind);
    if (through === null) throw new Error("a transaction of the database does not end");
    const rows = await readRows(store, systemClock, kind, { after: done.through, through, since });
    if (rows.length === 0) return done;
    const file = exportFile(kind, rows);
    await storage.put(file.name, await file.bytes());
    done.rows += file.rows;
    done.files += 1;
    done.through = file.last;
  }
}

interface ReadBooks {
  readonly store: SqlExportStore;
  close(): Promise<void>;
}

function openBooks(store: StoreConfig, { env, cwd }: CommandContext): ReadBooks {
  if (store.kind === "postgres") {
    const postgres = new Postgres({ url: store.url, connections: 1, deadlineMs: ANSWER_MS }, systemClock);
    return {
      store: new SqlExportStore(new PostgresDatabase(postgres)),
      close: () => postgres.close(),
    };
  }
  const path = join(resolve(cwd, dataFolderPath(env.GATEWAY_DATA, cwd)), DATABASE);
  if (!existsSync(path))
    throw new CommandFailure(
      EXIT.found,
      `there is no database ${path}`,
      "Set GATEWAY_DATA to the data folder.",
    );
  const db = new Database(path, { readonly: true });
  return { store: new SqlExportStore(new SqliteDatabase(db)), close: async () => db.close() };
}

const ANSWER_MS = 30_000;
