import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { folderDisk } from "../../src/store/journal/disk.ts";
import { type Damage, journalFiles, type Unapplied } from "../../src/store/journal/journal.ts";
import { SqliteLedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import { ManualClock } from "../fakes/clock.ts";
import { SimulatedDisk } from "../sim/disk.ts";
import { end } from "./end-record.ts";
import { booksOn, NO_STORE, NOTHING_OPEN } from "./open-books.ts";

async function passed(clock: ManualClock, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    clock.advance(1_000);
    await Bun.sleep(0);
  }
}

/** A busy core settles half as many a second. */
const RATE_PER_MS = 20;

test("the database keeps up with more ends than a core can settle, in batches that are short", async () => {
  const clock = new ManualClock();
  const batches: number[] = [];
  const apply = async (batch: readonly Unapplied[]) => void batches.push(batch.length);
  const books = await booksOn(clock, { store: { ...NO_STORE, apply } });
  let most = 0;
  for (let ms = 0; ms < 1_000; ms++) {
    for (let one = 0; one < RATE_PER_MS; one++) books.journal.append(end(ms * RATE_PER_MS + one));
    await books.journal.flushed();
    clock.advance(1);
    most = Math.max(most, books.journal.unappliedCount);
  }
  expect(batches.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(980 * RATE_PER_MS);
  expect(most).toBeLessThan(50 * RATE_PER_MS);
  expect(Math.max(...batches)).toBeLessThanOrEqual(64);
});

test("the database keeps up where a thousand requests end in each turn of the loop", async () => {
  const clock = new ManualClock();
  const batches: number[] = [];
  const apply = async (batch: readonly Unapplied[]) => void batches.push(batch.length);
  const books = await booksOn(clock, { store: { ...NO_STORE, apply } });
  for (let turn = 0; turn < 60; turn++) {
    for (let one = 0; one < 1_000; one++) books.journal.append(end(turn * 1_000 + one));
    await books.journal.flushed();
    clock.advance(60);
  }
  expect(books.journal.unappliedCount).toBeLessThan(3_000);
  expect(Math.max(...batches)).toBeLessThanOrEqual(1_024);
});

test("a database that refuses is asked twice a second, however many ends come", async () => {
  const clock = new ManualClock();
  let reads = 0;
  const apply = async () => {
    reads += 1;
    throw new Error("SQLITE_FULL");
  };
  const books = await booksOn(clock, { store: { ...NO_STORE, apply }, onFault() {} });
  for (let ms = 0; ms < 3_000; ms++) {
    books.journal.append(end(ms));
    await books.journal.flushed();
    clock.advance(1);
  }
  expect(reads).toBeGreaterThanOrEqual(6);
  expect(reads).toBeLessThanOrEqual(7);
});

test("a file of the journal is kept until the database has come through with what stands in it", async () => {
  const clock = new ManualClock();
  const disk = new SimulatedDisk();
  let through = false;
  let reads = 0;
  const checkpoint = async () => {
    reads += 1;
    return through;
  };
  const books = await booksOn(clock, { disk, store: { ...NO_STORE, checkpoint }, journalFileBytes: 1 });
  books.follow(NOTHING_OPEN);
  const first = books.journal.currentFile;
  books.journal.append(end(1));
  await books.journal.flushed();
  await passed(clock, 5);
  expect(reads).toBeGreaterThan(1);
  expect(journalFiles(disk)).toContain(first);
  through = true;
  await passed(clock, 2);
  expect(journalFiles(disk)).not.toContain(first);
  await books.close();
});

test("a file of the journal goes although there is always something on its way to the next", async () => {
  const clock = new ManualClock();
  const disk = new SimulatedDisk();
  const books = await booksOn(clock, { disk, journalFileBytes: 1 });
  books.follow(NOTHING_OPEN);
  const first = books.journal.currentFile;
  for (let second = 0; second < 5; second++) {
    books.journal.append(end(second));
    books.journal.schedule();
    clock.advance(1_000);
    await Bun.sleep(0);
  }
  expect(books.journal.currentFile).toBeGreaterThan(first);
  expect(journalFiles(disk)).not.toContain(first);
  await books.close();
});

test("while the database does not come through, one file of the journal follows the other, and then all of them go", async () => {
  const clock = new ManualClock();
  const disk = new SimulatedDisk();
  let through = false;
  const checkpoint = async () => through;
  const books = await booksOn(clock, { disk, store: { ...NO_STORE, checkpoint }, journalFileBytes: 1_000 });
  books.follow(NOTHING_OPEN);
  const pass = async () => {
    for (let one = 0; one < 10; one++) books.journal.append(end(one));
    await books.journal.flushed();
    clock.advance(1_000);
    await Bun.sleep(0);
  };
  for (let second = 0; second < 6; second++) await pass();
  const sizes = journalFiles(disk).map(
    (file) => disk.read(`journal-${String(file).padStart(8, "0")}.log`).length,
  );
  expect(sizes.length).toBeGreaterThan(4);
  expect(Math.max(...sizes)).toBeLessThan(5_000);
  through = true;
  await pass();
  await pass();
  expect(journalFiles(disk).length).toBeLessThanOrEqual(2);
  await books.close();
});

test("books close although the database's disk is full, and say so", async () => {
  const faults: unknown[] = [];
  const full = new Error("SQLITE_FULL");
  const checkpoint = () => Promise.reject(full);
  const onFault = (error: unknown) => void faults.push(error);
  const books = await booksOn(new ManualClock(), { store: { ...NO_STORE, checkpoint }, onFault });
  expect(await books.close()).toBe(true);
  expect(faults).toEqual([full]);
});

test("files of the journal go although the disk has no room for a new one, which they may be in the way of", async () => {
  const clock = new ManualClock();
  const disk = new SimulatedDisk();
  const books = await booksOn(clock, { disk, journalFileBytes: 1, onFault() {} });
  books.follow(NOTHING_OPEN);
  const first = books.journal.currentFile;
  books.journal.append(end(1));
  await books.journal.flushed();
  clock.advance(1_000);
  expect(books.journal.currentFile).toBe(first + 1);
  books.journal.append(end(2));
  await books.journal.flushed();
  disk.open = () => {
    throw new Error("ENOSPC");
  };
  await passed(clock, 3);
  expect(journalFiles(disk)).toEqual([first + 1]);
});

test("a file of the journal stays while the end of a hold in it is not on the disk", async () => {
  const clock = new ManualClock();
  const disk = new SimulatedDisk();
  let sync = () => {};
  const books = await booksOn(clock, { disk, journalFileBytes: 1, defer: (run) => void (sync = run) });
  books.follow(NOTHING_OPEN);
  const first = books.journal.currentFile;
  books.journal.append(end("hold"));
  books.journal.schedule();
  sync();
  await books.catchUp();
  // The ledger has closed it, and nothing else is open: the file that comes begins with no hold.
  books.journal.append(end("not on the disk"));
  await passed(clock, 5);
  expect(books.journal.currentFile).toBeGreaterThan(first);
  expect(journalFiles(disk)).toContain(first);
  sync();
  await passed(clock, 2);
  expect(journalFiles(disk)).not.toContain(first);
});

test("a number whose lines still stand in a spare file is not used again, although the journal is gone", async () => {
  const disk = new SimulatedDisk();
  disk.open("journal-00000009.spare");
  const books = await booksOn(new ManualClock(), { disk });
  expect(books.journal.currentFile).toBe(10);
  await books.close();
});

test("a start keeps the journal's files while somebody reads the database, because they may be all that a power cut leaves", async () => {
  const folder = mkdtempSync(join(tmpdir(), "books-"));
  const path = join(folder, "gateway.sqlite");
  const db = openDatabase(path, "NORMAL");
  const store = new SqliteLedgerStore(new SqliteDatabase(db));
  const disk = new SimulatedDisk();
  const open = async () => {
    const clock = new ManualClock();
    const books = await booksOn(clock, { disk, store: store.endsOf(null) });
    books.follow(NOTHING_OPEN);
    return { books, second: () => passed(clock, 1) };
  };
  const first = await open();
  first.books.journal.append(end(1));
  await first.books.journal.flushed();

  const reader = new Database(path, { readonly: true });
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM ends").get();
  const last = await open();
  await last.second();
  expect(journalFiles(disk)).toContain(first.books.journal.currentFile);
  reader.run("COMMIT");
  await last.second();
  expect(journalFiles(disk)).toEqual([last.books.journal.currentFile]);
  expect(db.query("SELECT receipt FROM ends").all()).toEqual([{ receipt: "rcpt_1" }]);
  reader.close();
  db.close();
  rmSync(folder, { recursive: true });
});

test("a journal whose disk has changed a line is kept under another name, with the whole lines behind it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "damaged-"));
  try {
    const clock = new ManualClock();
    const disk = folderDisk(folder);
    const before = await booksOn(clock, { disk });
    for (const name of ["a", "b", "c"]) before.journal.append(end(name));
    await before.journal.flushed();
    await before.close();
    const path = join(folder, "journal-00000001.log");
    const text = readFileSync(path, "latin1").replace("rcpt_b", "rcpt_X");
    writeFileSync(path, text, "latin1");

    const booked: string[] = [];
    const damages: Damage[] = [];
    const apply = async (batch: readonly Unapplied[]) =>
      void booked.push(...batch.map(({ record }) => record.receipt));
    const store = { ...NO_STORE, apply };
    const books = await booksOn(clock, { disk, store, onDamaged: (damage) => damages.push(damage) });
    books.follow(NOTHING_OPEN);
    expect(booked).toEqual(["rcpt_a"]);
    expect(damages).toMatchObject([
      { file: "journal-00000001.log", keptAs: "journal-00000001.damaged", linesLeftOut: 1 },
    ]);
    while (existsSync(path)) await passed(clock, 1);
    expect(readFileSync(join(folder, "journal-00000001.damaged"), "latin1")).toBe(text);
    await books.close();
    // It is no journal any more, and nothing is made of it again.
    const next = await booksOn(clock, { disk, store, onDamaged: (damage) => damages.push(damage) });
    expect(damages).toHaveLength(1);
    await next.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
