import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SQLITE_SCHEMA } from "../../src/store/schema/migrations.ts";
import { versionOf } from "../../src/store/schema/schema-version.ts";
import { gateway } from "./command.ts";

const OWN = versionOf(SQLITE_SCHEMA);
let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "upgrade-"));
  path = join(folder, "gateway.sqlite");
});
afterEach(() => rmSync(folder, { recursive: true }));

const check = (...more: string[]) =>
  gateway(["upgrade", "--check", ...more], { GATEWAY_DATA: folder }, folder);

function makeFirstRelease(version = SQLITE_SCHEMA.first): void {
  const db = new Database(path);
  db.run(SQLITE_SCHEMA.migrations[0]!);
  db.run(`PRAGMA user_version = ${version}`);
  db.close();
}

function migrateFurther(oldestUser: number): void {
  openDatabase(path).close();
  const db = new Database(path);
  db.run(`PRAGMA user_version = ${OWN + 1}`);
  db.run("UPDATE gateway_schema SET oldest_user = ?", [oldestUser]);
  db.close();
}

type Row = [what: string, prepare: () => void, code: number, says: string];
test.each<Row>([
  ["an empty folder", () => {}, 0, "The first start makes its tables."],
  ["its own database", () => openDatabase(path).close(), 0, "A start changes nothing."],
  [
    "a database of an older gateway",
    makeFirstRelease,
    0,
    `The next start runs ${SQLITE_SCHEMA.migrations.length - 1} migrations.\nThe gateways that use it now (schema ${SQLITE_SCHEMA.first}) cannot use it afterwards`,
  ],
  ["a newer one that it can use", () => migrateFurther(OWN), 0, "this one can still use it"],
  ["a newer one that it cannot use", () => migrateFurther(OWN + 1), 1, "written by a newer gateway"],
])("of %s, says what a start does, and changes nothing", async (_, prepare, code, says) => {
  prepare();
  const before = versionAt();
  const run = await check();
  expect([run.code, run.out + run.err]).toEqual([code, expect.stringContaining(says)]);
  expect(versionAt()).toBe(before);
});

test("as JSON, for scripts that replace nodes", async () => {
  makeFirstRelease();
  const { out } = await check("--json");
  expect(JSON.parse(out)).toMatchObject({
    schema: OWN,
    oldest_user: SQLITE_SCHEMA.oldestUser,
    present_schema: SQLITE_SCHEMA.first,
    migrations: SQLITE_SCHEMA.migrations.length - 1,
  });
});

function versionAt(): number | null {
  try {
    using db = new Database(path, { readonly: true });
    return db.query<{ user_version: number }, []>("PRAGMA user_version").get()!.user_version;
  } catch {
    return null;
  }
}
