import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase, presentSchema } from "../../src/store/database/sqlite.ts";
import { SQLITE_SCHEMA } from "../../src/store/schema/migrations.ts";
import {
  migrationsFrom,
  type PresentSchema,
  type Schema,
  versionOf,
} from "../../src/store/schema/schema-version.ts";

const SCHEMA: Schema = {
  first: 5,
  migrations: ["5", "6", "7"],
  oldestUser: 6,
  source: "database",
  wayBack: "restore a dump",
};

type Row = [what: string, present: PresentSchema, run: string[] | string];
test.each<Row>([
  ["an empty database gets all", { version: 0, oldestUser: null }, ["5", "6", "7"]],
  ["of the first release, the later ones", { version: 5, oldestUser: null }, ["6", "7"]],
  ["of the release before, the last", { version: 6, oldestUser: 5 }, ["7"]],
  ["of this release, none", { version: 7, oldestUser: 6 }, []],
  ["a newer one that this release can use is left as it is", { version: 8, oldestUser: 7 }, []],
  [
    "a newer one that this release cannot use is refused",
    { version: 9, oldestUser: 8 },
    "a newer gateway (schema 9, this one knows 7)",
  ],
  [
    "a newer one that does not say who can use it is refused",
    { version: 8, oldestUser: null },
    "a newer gateway",
  ],
  [
    "one from before the first release is refused",
    { version: 4, oldestUser: null },
    "before the first release",
  ],
])("%s", (_, present, run) => {
  if (typeof run === "string") expect(() => migrationsFrom(present, SCHEMA)).toThrow(run);
  else expect(migrationsFrom(present, SCHEMA)).toEqual(run);
});

describe("a database in SQLite that a newer gateway migrated", () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "schema-"));
    path = join(folder, "gateway.sqlite");
    openDatabase(path).close();
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  function migrateFurther(oldestUser: number): void {
    const db = new Database(path);
    db.run("ALTER TABLE budgets ADD COLUMN of_tomorrow TEXT");
    db.run(`PRAGMA user_version = ${versionOf(SQLITE_SCHEMA) + 1}`);
    db.run("UPDATE gateway_schema SET oldest_user = ?", [oldestUser]);
    db.close();
  }

  test("by adding to it, is opened and keeps its version", () => {
    migrateFurther(versionOf(SQLITE_SCHEMA));
    const db = openDatabase(path);
    expect(presentSchema(db)).toEqual({
      version: versionOf(SQLITE_SCHEMA) + 1,
      oldestUser: versionOf(SQLITE_SCHEMA),
    });
    db.close();
  });

  test("by taking away what this one uses, is refused and stays as it is", () => {
    migrateFurther(versionOf(SQLITE_SCHEMA) + 1);
    expect(() => openDatabase(path)).toThrow("was written by a newer gateway");
    const db = new Database(path, { readonly: true });
    expect(presentSchema(db).version).toBe(versionOf(SQLITE_SCHEMA) + 1);
    db.close();
  });
});
