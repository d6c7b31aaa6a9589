import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqlKeyStore } from "../../src/store/customers/key-store.ts";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { SqliteLedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import { SQLITE_SCHEMA } from "../../src/store/schema/migrations.ts";
import { StoreUnusable } from "../../src/units/errors/bookkeeping.ts";
import { ManualClock } from "../fakes/clock.ts";
import {
  OLD_BALANCES,
  OLD_BOOKS,
  OLD_ROOTS,
  oldBooks,
  ROWS_WITHOUT_ROOTS,
  readOldBooks,
  readOldRoots,
} from "./first-release.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "first-release-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function pathOf(version: number): string {
  const path = join(folder, "gateway.sqlite");
  const old = new Database(path);
  old.run(SQLITE_SCHEMA.migrations[0]!);
  old.run(`PRAGMA user_version = ${version}`);
  old.run(ROWS_WITHOUT_ROOTS);
  old.run(oldBooks(false));
  old.close();
  return path;
}

test("a database of the first release has all that it had: keys with their roots, books, grants that nodes hold", async () => {
  const db = openDatabase(pathOf(SQLITE_SCHEMA.first));
  const keys = new SqlKeyStore(new SqliteDatabase(db), new ManualClock());
  const store = new SqliteLedgerStore(new SqliteDatabase(db));
  expect(await readOldRoots(keys)).toEqual(OLD_ROOTS);
  expect(await readOldBooks(keys, store)).toMatchObject(OLD_BOOKS);
  db.close();
});

test("its keys have no policy", async () => {
  const db = openDatabase(pathOf(SQLITE_SCHEMA.first));
  const keys = await new SqlKeyStore(new SqliteDatabase(db), new ManualClock()).keysOf(
    OLD_BALANCES,
    20,
    null,
  );
  expect(keys.map(({ policy }) => policy)).toEqual(keys.map(() => null));
  expect(keys.length).toBeGreaterThan(0);
  db.close();
});

test("a database from before it is refused, and stays as it is", () => {
  const path = pathOf(SQLITE_SCHEMA.first - 1);
  expect(() => openDatabase(path)).toThrow(StoreUnusable);
  expect(() => openDatabase(path)).toThrow("from before the first release (schema 14)");
});
