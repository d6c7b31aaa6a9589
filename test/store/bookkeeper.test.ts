import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Bookkeeper } from "../../src/store/bookkeeper.ts";
import { folderDisk } from "../../src/store/disk.ts";
import { DurableJournal } from "../../src/store/journal.ts";
import { openDatabase } from "../../src/store/sqlite.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import { ManualClock } from "../fakes/clock.ts";
import { end } from "./end-record.ts";

let close = async () => {};
afterEach(() => close());

function opened() {
  const folder = mkdtempSync(join(tmpdir(), "bookkeeper-"));
  const path = join(folder, "gateway.sqlite");
  const db = openDatabase(path);
  const bookkeeper = new Bookkeeper(folder, path, new ManualClock(), (error) => {
    throw error;
  });
  const journal = new DurableJournal({
    disk: folderDisk(folder),
    firstFile: 1,
    fileBytes: 1e9,
    relaxed: false,
    defer: queueMicrotask,
    after() {},
  });
  const write = async (...names: string[]) => {
    for (const name of names) journal.append(end(name));
    await journal.flushed();
    return journal.unapplied(1_000);
  };
  const booked = (of: Database = db) =>
    of
      .query<{ receipt: string }, []>("SELECT receipt FROM ends ORDER BY seq")
      .all()
      .map((row) => row.receipt);
  /** In the database alone, without its log. */
  const forGood = () => {
    copyFileSync(path, join(folder, "alone.sqlite"));
    const alone = new Database(join(folder, "alone.sqlite"), { readwrite: true });
    const receipts = booked(alone);
    alone.close();
    return receipts;
  };
  close = async () => {
    await bookkeeper.close();
    db.close();
    rmSync(folder, { recursive: true });
  };
  return { folder, path, db, bookkeeper, journal, write, booked, forGood };
}

test("ends are booked from the journal's files, once, in the order in which they stand there", async () => {
  const { bookkeeper, journal, write, booked } = opened();
  const first = await write("a", "b");
  await bookkeeper.apply(first);
  await bookkeeper.apply(first);
  expect(booked()).toEqual(["rcpt_a", "rcpt_b"]);
  journal.rotate(() => []);
  await bookkeeper.apply(await write("c", "d"));
  expect(booked()).toEqual(["rcpt_a", "rcpt_b", "rcpt_c", "rcpt_d"]);
});

test("what cannot be read in the journal is refused, and nothing of it is booked", async () => {
  const { folder, bookkeeper, write, booked } = opened();
  const batch = await write("a", "b");
  const file = folderDisk(folder).open("journal-00000001.log");
  file.write(Buffer.from("#"), batch[0]!.bytes + 20);
  file.close();
  await expect(bookkeeper.apply(batch)).rejects.toThrow("journal-00000001.log cannot be read from byte");
  expect(booked()).toEqual([]);
});

test("what was committed before a checkpoint was asked for is in the database when it says so", async () => {
  const { bookkeeper, write, forGood } = opened();
  const applied = bookkeeper.apply(await write("a"));
  expect(await bookkeeper.checkpoint()).toBe(true);
  await applied;
  expect(forGood()).toEqual(["rcpt_a"]);
});

test("a checkpoint says no while a reader keeps the log from being copied", async () => {
  const { path, bookkeeper, write, forGood } = opened();
  await bookkeeper.apply(await write("a"));
  const reader = new Database(path, { readonly: true });
  reader.run("BEGIN");
  reader.query("SELECT * FROM ends").all();
  await bookkeeper.apply(await write("b"));
  expect(await bookkeeper.checkpoint()).toBe(false);
  reader.run("COMMIT");
  expect(await bookkeeper.checkpoint()).toBe(true);
  expect(forGood()).toEqual(["rcpt_a", "rcpt_b"]);
  reader.close();
});

test("receipts are deleted there too", async () => {
  const { bookkeeper, write, booked } = opened();
  await bookkeeper.apply(await write("a", "b"));
  expect(await bookkeeper.fold(2_000 as EpochMs)).toBe(2);
  expect(booked()).toEqual([]);
});

test("a write that holds the database is waited for, off the event loop", async () => {
  const { db, bookkeeper, write, booked } = opened();
  db.run("BEGIN IMMEDIATE");
  const applied = bookkeeper.apply(await write("a"));
  expect(await Promise.race([applied, Bun.sleep(50).then(() => "waiting")])).toBe("waiting");
  db.run("COMMIT");
  await applied;
  expect(booked()).toEqual(["rcpt_a"]);
});

test("whoever waits as it closes is answered, and whoever asks later is refused", async () => {
  const { bookkeeper, write, booked } = opened();
  const waiting = bookkeeper.apply(await write("a"));
  await bookkeeper.close();
  await waiting;
  expect(booked()).toEqual(["rcpt_a"]);
  await expect(bookkeeper.checkpoint()).rejects.toThrow("the books are closed");
});
