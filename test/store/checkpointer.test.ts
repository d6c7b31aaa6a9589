import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Checkpointer } from "../../src/store/checkpointer.ts";
import { openDatabase } from "../../src/store/sqlite.ts";
import { ManualClock } from "../fakes/clock.ts";

function opened() {
  const folder = mkdtempSync(join(tmpdir(), "checkpointer-"));
  const path = join(folder, "gateway.sqlite");
  const db = openDatabase(path, "NORMAL");
  db.run("CREATE TABLE notes (text TEXT)");
  const checkpointer = new Checkpointer(path, new ManualClock(), (error) => {
    throw error;
  });
  /** In the database alone, without its log. */
  const noted = () => {
    copyFileSync(path, join(folder, "alone.sqlite"));
    const alone = new Database(join(folder, "alone.sqlite"), { readwrite: true });
    const rows = alone.query<{ text: string }, []>("SELECT text FROM notes").all();
    alone.close();
    return rows.map(({ text }) => text);
  };
  const close = () => {
    checkpointer.stop();
    db.close();
    rmSync(folder, { recursive: true });
  };
  return { db, path, checkpointer, noted, close };
}

test("what was committed before it was asked is in the database when it says so", async () => {
  const { db, checkpointer, noted, close } = opened();
  db.run("INSERT INTO notes VALUES ('a')");
  const first = checkpointer.now();
  db.run("INSERT INTO notes VALUES ('b')");
  expect(await Promise.all([first, checkpointer.now()])).toEqual([true, true]);
  expect(noted()).toEqual(["a", "b"]);
  close();
});

test("it says no while a reader keeps the log from being copied, and to whoever waits as it stops", async () => {
  const { db, path, checkpointer, close } = opened();
  db.run("INSERT INTO notes VALUES ('a')");
  const reader = new Database(path, { readonly: true });
  reader.run("BEGIN");
  reader.query("SELECT * FROM notes").all();
  db.run("INSERT INTO notes VALUES ('b')");
  expect(await checkpointer.now()).toBe(false);
  reader.run("COMMIT");
  expect(await checkpointer.now()).toBe(true);
  const late = checkpointer.now();
  checkpointer.stop();
  expect(await late).toBe(false);
  expect(await checkpointer.now()).toBe(false);
  reader.close();
  close();
});
