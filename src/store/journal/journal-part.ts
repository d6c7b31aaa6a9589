import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { parseTerminal } from "../../ledger/record.ts";
import { assert } from "../../units/assert.ts";
import { folderDisk } from "./disk.ts";
import { fileName, readJournal, type Unapplied } from "./journal.ts";
import { readLines } from "./lines.ts";

/** Of a journal file: what is behind `from`, up to the end of the line at `to`. */
export interface JournalPart {
  readonly file: number;
  readonly from: number;
  readonly to: number;
}

/**
 * The ends of requests in a part of a journal that another process writes in this folder, and that is durable up to
 * there. The part is read alone, where no line in it is torn.
 */
export function endsIn(folder: string, part: JournalPart): Unapplied[] {
  if (part.to <= part.from) return [];
  const ends = wholeEnds(folder, part);
  const found = ends.at(-1)?.bytes === part.to ? ends : endsAroundDamage(folder, part);
  assert(found.at(-1)?.bytes === part.to, `${fileName(part.file)} has no end at ${part.to}`);
  return found;
}

/** Up to the first torn line. */
function wholeEnds(folder: string, { file, from, to }: JournalPart): Unapplied[] {
  const ends: Unapplied[] = [];
  for (const { text, end } of readLines(bytesOf(join(folder, fileName(file)), from, to), file)) {
    const record = parseTerminal(text);
    if (record !== null) ends.push({ record, sequence: 0, file, bytes: from + end });
  }
  return ends;
}

/** As a start reads it. */
function endsAroundDamage(folder: string, part: JournalPart): Unapplied[] {
  const ends: Unapplied[] = [];
  for (const { record, file, bytes } of readJournal(folderDisk(folder))) {
    const isIn = file === part.file && bytes > part.from && bytes <= part.to;
    if (isIn && record.kind === "terminal") ends.push({ record, sequence: 0, file, bytes });
  }
  return ends;
}

function bytesOf(path: string, from: number, to: number): Buffer {
  const bytes = Buffer.allocUnsafe(to - from);
  const file = openSync(path, "r");
  try {
    let length = 0;
    for (let read = 1; read > 0 && length < bytes.length; length += read)
      read = readSync(file, bytes, length, bytes.length - length, from + length);
    return bytes.subarray(0, length);
  } finally {
    closeSync(file);
  }
}
