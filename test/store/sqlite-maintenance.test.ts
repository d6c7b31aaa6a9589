import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { SqliteMaintenance } from "../../src/store/database/sqlite-maintenance.ts";
import { SqliteLedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import { ManualClock } from "../fakes/clock.ts";
import { end } from "./end-record.ts";

let close = async () => {};
afterEach(() => close());

function opened() {
  const folder = mkdtempSync(join(tmpdir(), "maintenance-"));
  const path = join(folder, "gateway.sqlite");
  const db = openDatabase(path, "NORMAL");
  const store = new SqliteLedgerStore(new SqliteDatabase(db));
  const maintenance = new SqliteMaintenance(path, new ManualClock(), (error) => {
    throw error;
  });
  const book = (...names: string[]) =>
    void store.ship(
      null,
      null,
      names.map((name) => ({ record: end(name), sequence: 0, file: 1, bytes: 1 })),
    );
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
    await maintenance.close();
    db.close();
    rmSync(folder, { recursive: true });
  };
  return { path, db, maintenance, book, booked, forGood };
}

test("what was committed before a checkpoint was asked for is in the database when it says so", async () => {
  const { maintenance, book, forGood } = opened();
  book("a");
  expect(await maintenance.checkpoint()).toBe(true);
  expect(forGood()).toEqual(["rcpt_a"]);
});

test("a checkpoint says no while a reader keeps the log from being copied", async () => {
  const { path, maintenance, book, forGood } = opened();
  book("a");
  const reader = new Database(path, { readonly: true });
  reader.run("BEGIN");
  reader.query("SELECT * FROM ends").all();
  book("b");
  expect(await maintenance.checkpoint()).toBe(false);
  reader.run("COMMIT");
  expect(await maintenance.checkpoint()).toBe(true);
  expect(forGood()).toEqual(["rcpt_a", "rcpt_b"]);
  reader.close();
});

test("receipts are deleted, once nobody else writes", async () => {
  const { db, maintenance, book, booked } = opened();
  book("a", "b");
  db.run("BEGIN IMMEDIATE");
  const deleted = maintenance.fold(2_000 as EpochMs);
  expect(await Promise.race([deleted, Bun.sleep(50).then(() => "waiting")])).toBe("waiting");
  db.run("COMMIT");
  expect(await deleted).toBe(2);
  expect(booked()).toEqual([]);
});

test("when the thread ends with a question open, the caller gets an error, others can write, and the next one is answered by another thread", async () => {
  const { db, maintenance, book, booked } = opened();
  book("a", "b");
  expect(await maintenance.checkpoint()).toBe(true);
  db.run("BEGIN IMMEDIATE");
  const waiting = maintenance.fold(2_000 as EpochMs);
  await Bun.sleep(20);
  (maintenance as unknown as { thread: Worker }).thread.terminate();
  db.run("COMMIT");
  await expect(waiting).rejects.toThrow("the database's thread has ended");
  book("c");
  expect(await maintenance.checkpoint()).toBe(true);
  // What the first thread was asked may have been done or not.
  await maintenance.fold(2_000 as EpochMs);
  expect(booked()).toEqual([]);
});

test("callers that wait as it closes are answered, and later ones are refused", async () => {
  const { maintenance, book, booked } = opened();
  book("a");
  const waiting = maintenance.fold(2_000 as EpochMs);
  await maintenance.close();
  expect(await waiting).toBe(1);
  expect(booked()).toEqual([]);
  await expect(maintenance.checkpoint()).rejects.toThrow("the books are closed");
});
