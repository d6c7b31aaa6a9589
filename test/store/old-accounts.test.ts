import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqlAccountStore } from "../../src/store/sql/account-store.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { SqliteKeyStore } from "../../src/store/sqlite/key-store.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations.ts";
import { SqliteStatements } from "../../src/store/sqlite/statements.ts";
import { ManualClock } from "../fakes/clock.ts";
import {
  OLD_ACCOUNTS,
  OLD_ROOTS,
  OLD_ROWS,
  ROWS_WITHOUT_ROOTS,
  readOldAccounts,
  readOldRoots,
} from "./old-accounts.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "old-accounts-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("a database from before claims could be undone knows who may claim, and what can be undone", async () => {
  const path = join(folder, "gateway.sqlite");
  const old = new Database(path);
  for (const migration of MIGRATIONS.slice(0, 7)) old.run(migration);
  old.run("PRAGMA user_version = 7");
  old.run(OLD_ROWS);
  old.close();
  const db = openDatabase(path);
  const clock = new ManualClock();
  expect(
    await readOldAccounts(
      new SqliteKeyStore(db, clock),
      new SqlAccountStore(new SqliteStatements(db), clock),
    ),
  ).toEqual(OLD_ACCOUNTS);
  db.close();
});

test("a database from before roots knows which keys derive from a claim", async () => {
  const path = join(folder, "gateway.sqlite");
  const old = new Database(path);
  for (const migration of MIGRATIONS.slice(0, 7)) old.run(migration);
  old.run(OLD_ROWS);
  for (const migration of MIGRATIONS.slice(7, 16)) old.run(migration);
  old.run("PRAGMA user_version = 16");
  old.run(ROWS_WITHOUT_ROOTS);
  old.close();
  const db = openDatabase(path);
  expect(await readOldRoots(new SqliteKeyStore(db, new ManualClock()))).toEqual(OLD_ROOTS);
  db.close();
});
