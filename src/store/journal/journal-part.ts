import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { parseTerminal } from "../../ledger/record.ts";
import { fileName, type Unapplied } from "./journal.ts";
import { readLines } from "./lines.ts";

/** The part of a journal file behind `from`, up to the end of the line at `to`. */
export interface JournalPart {
  readonly file: number;
  readonly from: number;
  readonly to: number;
}

/**
 * The ends of requests in a part of a journal that another process writes in this folder, and that is durable up to
 * there. Null where they cannot all be read there: the file is gone, or a line is torn or missing.
 */
export function endsIn(folder: string, { file, from, to }: JournalPart): Unapplied[] | null {
  if (to <= from) return [];
  const bytes = bytesOf(join(folder, fileName(file)), from, to);
  if (bytes === null) return null;
  const ends: Unapplied[] = [];
  let read = 0;
  for (const { text, end } of readLines(bytes, file)) {
    read = end;
    const record = parseTerminal(text);
    if (record !== null) ends.push({ record, sequence: 0, file, bytes: from + end });
  }
  return from + read === to ? ends : null;
}

/** Fewer, where the file is shorter; null where it cannot be read. */
function bytesOf(path: string, from: number, to: number): Buffer | null {
  let file: number | null = null;
  try {
    file = openSync(path, "r");
    const bytes = Buffer.allocUnsafe(to - from);
    let length = 0;
    for (let read = 1; read > 0 && length < bytes.length; length += read)
      read = readSync(file, bytes, length, bytes.length - length, from + length);
    return bytes.subarray(0, length);
  } catch {
    return null;
  } finally {
    if (file !== null) closeSync(file);
  }
}
