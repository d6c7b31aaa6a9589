import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import { folderDisk } from "../../src/store/journal/disk.ts";
import { DurableJournal } from "../../src/store/journal/journal.ts";
import { endsIn } from "../../src/store/journal/journal-part.ts";
import type { ReceiptId } from "../../src/units/id.ts";
import { end } from "./end-record.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "journal-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const FILE = 3;
const path = () => join(folder, "journal-00000003.log");
const delivered = { kind: "delivered", tokens: [["rcpt_a" as ReceiptId, 1]] } as const;

/** Writes each record with a sync of its own; returns where the ends stand. */
async function written(records: readonly LedgerRecord[]): Promise<number[]> {
  const journal = new DurableJournal({
    disk: folderDisk(folder),
    firstFile: FILE,
    fileBytes: 1e9,
    relaxed: false,
    defer: queueMicrotask,
    after() {},
  });
  for (const record of records) {
    journal.append(record);
    await journal.flushed();
  }
  const offsets = journal.unapplied(records.length).map(({ bytes }) => bytes);
  await journal.close();
  return offsets;
}

const receipts = (from: number, to: number) =>
  endsIn(folder, { file: FILE, from, to })?.map(({ record, bytes }) => [record.receipt as string, bytes]);

test("the ends in a part of a journal are read, and nothing before or behind it", async () => {
  const [a, b, c] = (await written([end("a"), delivered, end("b"), end("c"), delivered])) as [
    number,
    number,
    number,
  ];
  expect(receipts(0, a)).toEqual([["rcpt_a", a]]);
  expect(receipts(a, c)).toEqual([
    ["rcpt_b", b],
    ["rcpt_c", c],
  ]);
  expect(endsIn(folder, { file: FILE, from: 0, to: c })!.map(({ record }) => record)).toEqual(
    ["a", "b", "c"].map((name) => end(name)),
  );
});

test("a part that was read before is not looked for: its file may be gone", () => {
  expect(receipts(400, 400)).toEqual([]);
  expect(receipts(400, 300)).toEqual([]);
  expect(receipts(0, 1)).toBeUndefined();
});

test("a part is read whole or not at all: none of it where a line is torn, or where it ends in none", async () => {
  const [a, b, c] = (await written(["a", "b", "c"].map((name) => end(name)))) as [number, number, number];
  expect(receipts(0, b - 1)).toBeUndefined();
  expect(receipts(1, b)).toBeUndefined();
  expect(receipts(0, 1_000_000)).toBeUndefined();
  const bytes = readFileSync(path());
  bytes[a + 30]! ^= 1;
  writeFileSync(path(), bytes);
  expect(receipts(0, a)).toEqual([["rcpt_a", a]]);
  expect(receipts(b, c)).toEqual([["rcpt_c", c]]);
  expect(receipts(0, c)).toBeUndefined();
  expect(receipts(a, b)).toBeUndefined();
});
