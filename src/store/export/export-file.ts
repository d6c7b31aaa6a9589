import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { type EpochMs, isoTime } from "../../units/clock.ts";
import type { ExportKind, ExportRow } from "./export-rows.ts";

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
  // In a thread. Its head has no time, so that the same rows are the same bytes.
  bytes: () => compressed(rows.map(({ line }) => `${line}\n`).join("")),
});

const compressed = promisify((text: string, done: (error: Error | null, bytes: Uint8Array) => void) =>
  gzip(text, { level: LEVEL }, done),
);

/** 2026/11/28, as the first row's. */
const dayOf = (at: EpochMs): string => isoTime(at).slice(0, 10).replaceAll("-", "/");

/** Names in the order of numbers. */
const padded = (number: number): string => String(number).padStart(12, "0");

/** A tenth larger than by the usual 6, in a third of the time. */
const LEVEL = 3;
