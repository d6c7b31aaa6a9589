import { type Clock, pause } from "../../units/clock.ts";
import type { ExportKind, ExportRow, NumberRange } from "./export-rows.ts";
import type { SqlExportStore } from "./export-store.ts";

/** The rows of a range, from its first to where they come to so many characters. In slices, so that requests do not wait. */
export async function readRows(
  store: Pick<SqlExportStore, "rows">,
  clock: Pick<Clock, "after">,
  kind: ExportKind,
  range: NumberRange,
  maxChars = MAX_FILE_CHARS,
): Promise<readonly ExportRow[]> {
  const rows: ExportRow[] = [];
  let chars = 0;
  for (let { after } = range; chars < maxChars; after = rows.at(-1)!.number) {
    const slice = await store.rows(kind, { ...range, after }, SLICE);
    rows.push(...slice);
    for (const { line } of slice) chars += line.length;
    if (slice.length < SLICE) break;
    await pause(clock, PAUSE_MS);
  }
  return rows;
}

/** The size of a file before it is compressed: some 6,000 receipts, and a megabyte then. */
const MAX_FILE_CHARS = 8 * 1024 * 1024;
/** A millisecond of SQLite. */
const SLICE = 250;
const PAUSE_MS = 2;
