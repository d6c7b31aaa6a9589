import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqlChangeLog } from "../../src/store/customers/change-log.ts";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { SqlCreditStore } from "../../src/store/ledger/credits.ts";
import { KeeperDatabase } from "../../src/store/nodes/keeper-node-store.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import { rounds } from "../rounds.ts";
import { Random } from "../sim/random.ts";
import { ChangingOperator, changesOfOneMoment, loggedDifferences, NEWEST_FIRST } from "./logged-changes.ts";

const folder = mkdtempSync(join(tmpdir(), "logged-"));
afterAll(() => rmSync(folder, { recursive: true }));

const STEPS = 400;
const CRASHES = rounds(60, 100, 250);

/** One process on SQLite, and a node whose keeper writes. */
const KINDS = {
  "one process": (connection: Database) => {
    const db = new SqliteDatabase(connection);
    return { db, credits: new SqlCreditStore(db) };
  },
  "a keeper": (connection: Database) => {
    const keeper = new SqliteDatabase(connection);
    const db = new KeeperDatabase(connection, {
      commit: async (statements) => {
        await null;
        const rows = keeper.commitNow(structuredClone(statements));
        return rows === null ? null : { rows, version: null };
      },
    });
    const credits = new SqlCreditStore(db);
    return { db, credits };
  },
};

/**
 * SQLite appends what it commits to its log: the database as it was at a crash is what the log has up to any byte.
 */
test.each(Object.entries(KINDS))(
  "after a crash at any byte, the log of %s has the changes that were made",
  async (kind, make) => {
    for (const seed of [1, 2]) {
      const path = join(folder, `${kind} ${seed}.sqlite`.replaceAll(" ", "-"));
      const connection = openDatabase(path, "NORMAL");
      connection.run("PRAGMA wal_autocheckpoint = 0");
      connection.run("PRAGMA wal_checkpoint(TRUNCATE)");
      const start = `${path}.start`;
      copyFileSync(path, start);
      const { db, credits } = make(connection);
      const random = new Random(seed);
      const operator = new ChangingOperator(db, credits, random);
      for (let step = 0; step < STEPS; step++) await operator.step();
      expect(await loggedDifferences(db)).toEqual([]);
      const log = readFileSync(`${path}-wal`);
      const sizes = new Set<number>();
      for (let crash = 0; crash < CRASHES; crash++) {
        const left = `${path}.${crash}`;
        copyFileSync(start, left);
        writeFileSync(`${left}-wal`, log.subarray(0, random.below(log.length + 1)));
        const image = new Database(left);
        const crashed = new SqliteDatabase(image);
        expect(await loggedDifferences(crashed)).toEqual([]);
        const [row] = await crashed.read<{ rows: number }>`SELECT count(*) AS rows FROM change_log`;
        sizes.add(row!.rows);
        image.close();
        for (const file of [left, `${left}-wal`, `${left}-shm`]) rmSync(file, { force: true });
      }
      // The crashes were not all before the first change, or after the last.
      expect(sizes.size).toBeGreaterThan(CRASHES / 10);
      connection.close();
    }
  },
  600_000,
);

test("a row that is missing, and one too many, are found", async () => {
  const connection = openDatabase(join(folder, "found.sqlite"), "NORMAL");
  const db = new SqliteDatabase(connection);
  const operator = new ChangingOperator(db, new SqlCreditStore(db), new Random(3));
  for (let step = 0; step < 100; step++) await operator.step();
  expect(await loggedDifferences(db)).toEqual([]);
  for (const damage of [
    "DELETE FROM change_log WHERE id = (SELECT min(id) FROM change_log WHERE action = 'key.changed' OR action = 'balance.credited')",
    "UPDATE balances SET price_list = 'mine'",
  ]) {
    connection.run("BEGIN");
    connection.run(damage);
    expect(await loggedDifferences(db)).not.toEqual([]);
    connection.run("ROLLBACK");
  }
  connection.close();
});

test("changes of one millisecond are listed in their order", async () => {
  const connection = openDatabase(":memory:");
  expect(await changesOfOneMoment(new SqliteDatabase(connection))).toEqual(NEWEST_FIRST);
  connection.close();
});

test("rows that are old enough are deleted, some at a time", async () => {
  const connection = openDatabase(join(folder, "old.sqlite"), "NORMAL");
  const db = new SqliteDatabase(connection);
  const operator = new ChangingOperator(db, new SqlCreditStore(db), new Random(4));
  for (let step = 0; step < 600; step++) await operator.step();
  const log = new SqlChangeLog(db);
  const rows = async () =>
    (await db.read<{ count: number }>`SELECT count(*) AS count FROM change_log`)[0]!.count;
  const [all, times] = [
    await rows(),
    await db.read<{ at: EpochMs }>`SELECT created_at AS at FROM change_log ORDER BY 1`,
  ];
  const half = times[300]!.at;
  const deleted: number[] = [];
  do deleted.push(await log.forget(half));
  while (deleted.at(-1)! > 0);
  expect(deleted).toEqual([256, 44, 0]);
  expect(await rows()).toBe(all - 300);
  connection.close();
});
