import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hasWalResetFix, openDatabase } from "../../src/store/database/sqlite.ts";

const folder = mkdtempSync(join(tmpdir(), "sqlite-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const pageBytes = (db: Database) => db.query<{ page_size: number }, []>("PRAGMA page_size").get()!.page_size;

test("a new database has the larger pages; one that was made with smaller ones keeps them, and what it holds", () => {
  expect(pageBytes(openDatabase(join(folder, "new.sqlite")))).toBe(8_192);

  const path = join(folder, "old.sqlite");
  const old = new Database(path, { create: true });
  old.run("PRAGMA journal_mode = WAL");
  old.run("CREATE TABLE kept (value TEXT)");
  old.run("INSERT INTO kept VALUES ('still here')");
  old.close();
  const db = openDatabase(path);
  expect(pageBytes(db)).toBe(4_096);
  expect(db.query("SELECT value FROM kept").get()).toEqual({ value: "still here" });
  db.close();
});

test.each([
  ["3.43.2", false],
  ["3.51.2", false],
  ["3.51.3", true],
  ["3.54.0", true],
  ["4.0.0", true],
])("SQLite %s may copy its log while another connection writes: %p", (version, may) => {
  expect(hasWalResetFix(version)).toBe(may);
});
