import { exportFile, readRows } from "../store/export/export-file.ts";
import { EXPORT_KINDS, type ExportKind, SqlExportStore } from "../store/export/export-store.ts";
import { type ExportStorage, openStorage, readTarget, TARGET_FORMS } from "../store/export/export-target.ts";
import { type EpochMs, epochMs, systemClock } from "../units/clock.ts";
import { validConfiguration } from "./config.ts";
import { type CommandContext, messageOf, show, tableOf } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { openStore } from "./present-store.ts";

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
  await using present = openStore(store, context, ANSWER_MS);
  if (present.database === null)
    throw new CommandFailure(
      EXIT.found,
      `there is no database ${present.where}`,
      "Set GATEWAY_DATA to the data folder.",
    );
  const books = new SqlExportStore(present.database);
  try {
    const storage = openStorage({ to, endpoint: options.endpoint ?? null }, context.env);
    const done: ExportedKind[] = [];
    for (const kind of EXPORT_KINDS) done.push(await exportKind(kind, since, books, storage));
    const columns = { kind: "kind", rows: "rows", files: "files", through: "through" } as const;
    show(context, options.json, { data: done }, tableOf(columns, done));
  } catch (error) {
    throw new CommandFailure(
      EXIT.found,
      messageOf(error),
      "Files that were written are whole; run it again for the rest.",
    );
  }
}

const ANSWER_MS = 30_000;

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
