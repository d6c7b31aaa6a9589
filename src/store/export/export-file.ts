import { createGzip } from "node:zlib";
import { type Clock, type EpochMs, isoTime, pause } from "../../units/clock.ts";
import type { ExportKind, ExportRow, NumberRange, SqlExportStore } from "./export-store.ts";

/** A file of an export: its name is what it holds, so the same rows are always the same file. */
export interface ExportFile {
  readonly name: string;
  readonly rows: number;
  readonly last: number;
  bytes(): Promise<Uint8Array>;
}

/** Rows of one kind, in order; at least one. */
export const exportFile = (kind: ExportKind, rows: readonly ExportRow[]): ExportFile => ({
  name: `${kind}/${dayOf(rows[0]!.at)}/${padded(rows[0]!.number)}-${padded(rows.at(-1)!.number)}.jsonl.gz`,
  rows: rows.length,
  last: rows.at(-1)!.number,
  bytes: () => compressed(rows),
});

/** In a thread, some rows at a time. Its head has no time, so that the same rows are the same bytes. */
async function compressed(rows: readonly ExportRow[]): Promise<Uint8Array> {
  const gzip = createGzip({ level: LEVEL });
  const pieces: Uint8Array[] = [];
  gzip.on("data", (piece: Uint8Array) => pieces.push(piece));
  const ended = new Promise<void>((resolve, reject) => gzip.on("end", resolve).on("error", reject));
  for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) {
    const text = rows.slice(at, at + ROWS_AT_ONCE).map(({ line }) => `${line}\n`);
    await new Promise<void>((resolve) => gzip.write(text.join(""), () => resolve()));
  }
  gzip.end();
  await ended;
  return Buffer.concat(pieces);
}

/** 2026/11/28, as the first row's. */
const dayOf = (at: EpochMs): string => isoTime(at).slice(0, 10).replaceAll("-", "/");

/** Names in the order of numbers. */
const padded = (number: number): string => String(number).padStart(12, "0");

/** A tenth larger than by the usual 6, in a third of the time. */
const LEVEL = 3;
/** A quarter of a megabyte: longer ones stop the event loop for a moment. */
const ROWS_AT_ONCE = 250;

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
