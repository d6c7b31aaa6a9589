import { afterEach, beforeEach, expect, test } from "bun:test";
import { fdatasync, fstatSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqlKeyStore } from "../../src/store/customers/key-store.ts";
import { LogSync } from "../../src/store/database/log-sync.ts";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { StoreUnreachable } from "../../src/units/errors/bookkeeping.ts";
import { refuse } from "../../src/units/errors/refusal.ts";
import { type BalanceId, newId } from "../../src/units/id.ts";
import { systemRandom } from "../../src/units/random.ts";
import { hashSecret } from "../../src/units/secret-hash.ts";
import { balanceOf } from "../fakes/balance.ts";
import { ManualClock } from "../fakes/clock.ts";
import { keyOf } from "../fakes/key.ts";

/** The disk's syncs, which end when the test says so. */
const syncs: { file: number; end: (error: Error | null) => void }[] = [];
const reported: string[] = [];
let folder: string;
let log: LogSync;
let store: SqlKeyStore;
let isThere: (id: BalanceId) => boolean;
let close: () => void;
beforeEach(() => {
  syncs.length = 0;
  reported.length = 0;
  folder = mkdtempSync(join(tmpdir(), "log-"));
  const path = join(folder, "gateway.sqlite");
  const db = openDatabase(path, "NORMAL");
  log = new LogSync(
    path,
    (error) => reported.push(error.message),
    (file, end) => void syncs.push({ file, end }),
  );
  store = new SqlKeyStore(new SqliteDatabase(db, () => log.durable()), new ManualClock());
  isThere = (id) => db.query("SELECT 1 FROM balances WHERE id = ?").get(id) !== null;
  close = () => db.close();
});
afterEach(() => {
  close();
  log.close();
  rmSync(folder, { recursive: true });
});

function setUp(): { id: ReturnType<typeof newId<"bal">>; state: () => string } {
  const id = newId("bal", systemRandom);
  let state = "waits";
  const key = keyOf({ id: newId("key", systemRandom), balanceId: id, hash: hashSecret(id) });
  store.addBalance(balanceOf({ id, setUpKey: key.id }), key).then(
    () => (state = "durable"),
    (error) => (state = error instanceof StoreUnreachable ? "unreachable" : String(error)),
  );
  return { id, state: () => state };
}

/** A sync begins at the end of the turn in which it is asked for. */
const turn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

test("all that is changed in one turn shares a sync", async () => {
  const all = [setUp(), setUp(), setUp()];
  await turn();
  expect(syncs.length).toBe(1);
  syncs[0]!.end(null);
  await turn();
  expect(all.map(({ state }) => state())).toEqual(["durable", "durable", "durable"]);
});

test("a change is answered when the log was synced, and not before", async () => {
  const one = setUp();
  await turn();
  expect([one.state(), syncs.length, isThere(one.id)]).toEqual(["waits", 1, true]);
  syncs[0]!.end(null);
  await turn();
  expect(one.state()).toBe("durable");
});

test("who commits while a sync is under way shares the next one", async () => {
  const first = setUp();
  await turn();
  const others = Array.from({ length: 100 }, setUp);
  await turn();
  expect(syncs.length).toBe(1);
  syncs[0]!.end(null);
  await turn();
  expect([first.state(), syncs.length]).toEqual(["durable", 2]);
  expect(new Set(others.map(({ state }) => state()))).toEqual(new Set(["waits"]));
  syncs[1]!.end(null);
  await turn();
  expect(new Set(others.map(({ state }) => state()))).toEqual(new Set(["durable"]));
});

test("after a sync that failed nothing is acknowledged any more, whatever the next one says; it is reported once", async () => {
  const [one, two] = [setUp(), setUp()];
  await turn();
  syncs[0]!.end(new Error("EIO"));
  await turn();
  expect([one.state(), two.state()]).toEqual(["unreachable", "unreachable"]);
  const three = setUp();
  await turn();
  expect([three.state(), syncs.length]).toEqual(["unreachable", 1]);
  expect(reported).toHaveLength(1);
  expect(reported[0]).toContain("EIO");
  expect(reported[0]).toContain("until the gateway is started again");
});

test("what is refused writes nothing, and waits for nothing", async () => {
  const { id } = setUp();
  await turn();
  syncs[0]!.end(null);
  await store.addKey(id, () => refuse("invalid_request", "no"));
  expect(syncs.length).toBe(1);
});

test("a log that begins again is the same file", async () => {
  const path = join(folder, "other.sqlite");
  const db = openDatabase(path, "NORMAL");
  const synced: number[] = [];
  const real = new LogSync(
    path,
    (error) => reported.push(error.message),
    (file, done) => {
      synced.push(fstatSync(file).ino);
      fdatasync(file, done);
    },
  );
  for (let round = 0; round < 3; round++) {
    db.run(`CREATE TABLE t${round} (a)`);
    await real.durable();
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  expect(synced).toEqual(Array(3).fill(statSync(`${path}-wal`).ino));
  db.close();
  real.close();
});
