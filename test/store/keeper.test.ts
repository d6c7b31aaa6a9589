import { Database } from "bun:sqlite";
import { afterEach, expect, spyOn, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Budget, Key } from "../../src/customers/keys/key.ts";
import type { Statement } from "../../src/ledger/authority.ts";
import { EpochFenced } from "../../src/ledger/node-lease.ts";
import { DataFolderError } from "../../src/store/data-folder.ts";
import { LogSync } from "../../src/store/database/log-sync.ts";
import { folderDisk } from "../../src/store/journal/disk.ts";
import { DurableJournal } from "../../src/store/journal/journal.ts";
import { type Keeper, openKeeper } from "../../src/store/nodes/keeper.ts";
import { KeeperLink, KeeperSocket } from "../../src/store/nodes/keeper-link.ts";
import {
  KeeperDatabase,
  KeeperLedgerStore,
  keeperNodeStore,
  type NodeStoreParts,
} from "../../src/store/nodes/keeper-node-store.ts";
import {
  FrameReader,
  FrameTooLong,
  frameOf,
  KEEPER_PROTOCOL,
  type KeeperAnnouncement,
  type KeeperOperations,
} from "../../src/store/nodes/keeper-operations.ts";
import { systemClock } from "../../src/units/clock.ts";
import { StoreUnreachable } from "../../src/units/errors/bookkeeping.ts";
import { refuse, refused } from "../../src/units/errors/refusal.ts";
import type { BalanceId, KeyId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { balanceOf } from "../fakes/balance.ts";
import { ManualClock } from "../fakes/clock.ts";
import { gate } from "../fakes/gate.ts";
import { keyOf } from "../fakes/key.ts";
import { until } from "../fakes/until.ts";
import { end } from "./end-record.ts";

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "keeper-"));
  ends.push(() => rmSync(path, { recursive: true }));
  return path;
}

/** A process that keeps the database, as far as a node can tell. */
async function keep(path: string): Promise<{ keeper: Keeper; die(): Promise<void> }> {
  const fail = (error: unknown) => {
    throw error;
  };
  let socket: KeeperSocket | null = null;
  const keeper = openKeeper({
    database: join(path, "gateway.sqlite"),
    clock: systemClock,
    onFault: fail,
    onLost: fail,
    announce: (announcement) => socket?.announce(announcement),
  });
  socket = await KeeperSocket.listen(join(path, "keeper.sock"), keeper.operations, fail);
  let dead = false;
  const die = async () => {
    if (dead) return;
    dead = true;
    socket.stop();
    await keeper.stop();
  };
  ends.push(die);
  return { keeper, die };
}

function link(path: string): KeeperLink {
  const made = new KeeperLink(join(path, "keeper.sock"), systemClock, (error) => {
    throw error;
  });
  ends.push(() => made.close());
  return made;
}

/** The key store of a node, whose changes everybody notices at once. */
function keysOf(path: string, { acknowledged = async () => {} } = {}) {
  const store = keeperNodeStore(nodeParts(path), link(path));
  ends.push(() => store.close());
  return store.keys(acknowledged);
}

const nodeParts = (path: string): NodeStoreParts => ({
  folder: { databasePath: join(path, "gateway.sqlite") },
  clock: systemClock,
});

const BALANCE = balanceOf({ id: "bal_1", createdAt: systemClock.now() });
const key = (more: Partial<Key> = {}): Key =>
  keyOf({ id: "key_1" as KeyId, balanceId: BALANCE.id, createdAt: systemClock.now(), ...more });

const statement = (ledger: string, more: Partial<Statement> = {}): Statement =>
  ({
    ledger,
    epoch: 1,
    number: 1,
    counter: "day:key_1:0",
    used: 0,
    needed: 0,
    requested: 10,
    limit: 100,
    answeredInquiry: 0,
    inquiry: 0,
    ...more,
  }) as Statement;

test("frames are put together from whatever pieces they come in, and none is too long", () => {
  const messages = [{ a: "ä".repeat(50) }, [], { b: 1 }, "x".repeat(3_000)];
  const bytes = Buffer.concat(messages.map(frameOf));
  for (const size of [1, 2, 3, 5, 7, 1_000, bytes.length]) {
    const reader = new FrameReader();
    const read: unknown[] = [];
    for (let at = 0; at < bytes.length; at += size) read.push(...reader.read(bytes.subarray(at, at + size)));
    expect(read).toEqual(messages);
  }
  expect(() => new FrameReader().read(Buffer.from([0xff, 0, 0, 0]))).toThrow(FrameTooLong);
});

test("only the owner of the data folder can open the socket, and it must have an address", async () => {
  const path = folder();
  await keep(path);
  expect(statSync(join(path, "keeper.sock")).mode & 0o777).toBe(0o600);
  const mask = process.umask(0);
  ends.push(() => process.umask(mask));
  const beginning = KeeperSocket.listen(join(path, "begins.sock"), {} as KeeperOperations, () => {});
  expect(statSync(join(path, "begins.sock")).mode & 0o077).toBe(0);
  ends.push((await beginning).stop.bind(await beginning));
  expect(process.umask()).toBe(0);
  const long = KeeperSocket.listen(join(path, "x".repeat(100)), {} as KeeperOperations, () => {});
  await expect(long).rejects.toThrow(DataFolderError);
});

test("nodes that change a key at once decide one after another, on what it is then", async () => {
  const path = folder();
  await keep(path);
  const nodes = [keysOf(path), keysOf(path), keysOf(path)];
  await nodes[0]!.addBalance(BALANCE, key({ dailyLimit: 0 as NanoUsd }));
  const more = (now: Key) => ({ key: { ...now, dailyLimit: ((now.dailyLimit ?? 0) + 1) as NanoUsd } });
  await Promise.all(
    Array.from({ length: 12 }, (_, n) => nodes[n % 3]!.changeKey("key_1" as KeyId, (now) => more(now))),
  );
  expect((await nodes[1]!.keyById("key_1" as KeyId))?.dailyLimit).toBe(12 as NanoUsd);
});

test("what is refused is not written, and what a decision reads is as in one process", async () => {
  const path = folder();
  await keep(path);
  const [first, second] = [keysOf(path), keysOf(path)];
  await first.addBalance(BALANCE, key({ budgets: ["team"] }));
  const budget: Budget = {
    id: "bud_1",
    balanceId: BALANCE.id,
    name: "team",
    cap: 5 as NanoUsd,
    window: "day",
  };
  for (const isFull of [false, true]) {
    const name = isFull ? "other" : "team";
    const put = await first.putBudget(BALANCE.id, name, 1, (state) => {
      expect(state).toMatchObject({ balance: { id: BALANCE.id }, known: null, isFull });
      return isFull ? refuse("invalid_request", "full") : budget;
    });
    expect(put).toMatchObject(isFull ? { message: "full" } : budget);
  }
  expect((await second.balanceWithBudgets(BALANCE.id))?.budgets).toEqual([{ ...budget, perTag: null }]);
  const refusal = refuse("invalid_request", "no");
  const dropped = await second.dropBudget(BALANCE.id, "team", (state) => {
    expect(state).toMatchObject({ balance: { id: BALANCE.id }, known: budget, drawnFrom: 1 });
    return refusal;
  });
  expect(dropped).toBe(refusal);
  expect(await second.addKey(BALANCE.id, () => refusal)).toBe(refusal);
  expect(refused(await second.changeKey("key_1" as KeyId, () => refusal))).toBe(true);
  expect(await second.keysOf([BALANCE.id], 10, null)).toHaveLength(1);
  await expect(first.addKey("bal_9" as BalanceId, () => refusal)).rejects.toThrow("does not exist");
});

test("a change of a key is answered once every node has noticed it", async () => {
  const path = folder();
  await keep(path);
  const other = link(path);
  const received: KeeperAnnouncement[] = [];
  other.listen((announcement) => received.push(announcement));
  const life = await other.keeper.join("n1");
  expect(await other.keeper.renew("n1", life.epoch, life.seen)).toEqual([]);
  const noticed = gate();
  const versions: number[] = [];
  const keys = keysOf(path, {
    acknowledged: (async (version: number) => {
      versions.push(version);
      await noticed.passed;
    }) as () => Promise<void>,
  });
  await keys.addBalance(BALANCE, key());
  const changed = keys.changeKey("key_1" as KeyId, (now) => ({ key: { ...now, state: "revoked" } }));
  await until(() => versions.length === 1 && received.some(({ kind }) => kind === "changed"));
  expect(await other.keeper.unseen(versions[0]!)).toBe(true);
  const [change] = await other.keeper.renew("n1", life.epoch, life.seen);
  expect(change).toMatchObject({ key: key().hash, balance: BALANCE.id });
  expect(await other.keeper.renew("n1", life.epoch, change!.version)).toEqual([]);
  expect(await other.keeper.unseen(versions[0]!)).toBe(false);
  noticed.open();
  expect(await changed).toMatchObject({ key: { state: "revoked" } });
});

test("a keeper that dies is waited for; what it was granted stays granted", async () => {
  const path = folder();
  const first = await keep(path);
  const node = link(path);
  await node.keeper.join("n0");
  expect(await node.keeper.settle([statement("n0", { requested: 60 as NanoUsd })])).toMatchObject([
    { granted: 60 },
  ]);
  await node.keeper.join("n1");
  await first.die();
  const state = () => node.keeper.settle([statement("n1", { requested: 60 as NanoUsd })]);
  // Once more where the line had not broken yet.
  const waiting = state().catch(state);
  await keep(path);
  expect(await waiting).toMatchObject([{ granted: 40, elsewhere: 60 }]);
});

test("what was under way when the keeper died may have happened, and is reported so", async () => {
  const path = join(folder(), "keeper.sock");
  const silent = createServer((socket) => socket.write(frameOf({ protocol: KEEPER_PROTOCOL }))).listen(path);
  ends.push(() => silent.close());
  const node = new KeeperLink(path, systemClock, () => {});
  ends.push(() => node.close());
  const listing = node.keeper.list();
  silent.on("connection", (socket) => void socket.once("data", () => socket.destroy()));
  await expect(listing).rejects.toThrow(StoreUnreachable);
});

test("a keeper that is busy is waited for longer while its node starts", async () => {
  const clock = new ManualClock();
  const node = new KeeperLink(join(folder(), "keeper.sock"), clock, () => {});
  ends.push(() => node.close());
  const outcome = () => {
    let isGivenUp = false;
    void node.keeper.list().catch(() => {
      isGivenUp = true;
    });
    return async (ms: number) => {
      clock.advance(ms);
      await Bun.sleep(0);
      return isGivenUp;
    };
  };
  const starting = outcome();
  expect([await starting(59_999), await starting(1)]).toEqual([false, true]);
  node.started();
  const serving = outcome();
  expect([await serving(4_999), await serving(1)]).toEqual([false, true]);
});

test("a keeper of another version is not spoken to", async () => {
  const path = join(folder(), "keeper.sock");
  const other = createServer((socket) => socket.write(frameOf({ protocol: 99 }))).listen(path);
  ends.push(() => other.close());
  const { promise, resolve } = Promise.withResolvers<Error>();
  const node = new KeeperLink(path, systemClock, resolve);
  ends.push(() => node.close());
  expect((await promise).message).toContain("version 99");
});

test("a life that is over gets an error, and what a keeper cannot do is an error", async () => {
  const path = folder();
  await keep(path);
  const { keeper } = link(path);
  for (const name of ["n0", "n0"]) await keeper.join(name);
  await expect(keeper.settle([statement("n0")])).rejects.toThrow(EpochFenced);
  await expect(keeper.renew("n0", 1, 0)).rejects.toThrow(EpochFenced);
  const others = keeper as unknown as Record<string, () => Promise<unknown>>;
  for (const call of ["stop", "constructor", "toString"])
    await expect(others[call]!()).rejects.toThrow(`cannot ${call}`);
});

test("nothing is granted before it is durable", async () => {
  const { keeper } = await keep(folder());
  for (const name of ["n0", "over", "over", "n1"]) await keeper.operations.join(name);
  const synced = gate();
  const waiting = spyOn(LogSync.prototype, "durable").mockImplementation(() => synced.passed);
  try {
    let answered = 0;
    const all = ["n0", "over", "n1"].map((name) =>
      keeper.operations.settle([statement(name)]).finally(() => {
        answered += 1;
      }),
    );
    const settled = Promise.allSettled(all);
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    // A refusal has nothing to wait for.
    expect(answered).toBe(1);
    synced.open();
    expect((await settled).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  } finally {
    waiting.mockRestore();
  }
});

test("ends are booked from the journal, or sent where it cannot be read any more; and once, however often they are sent", async () => {
  const path = folder();
  await keep(path);
  const database = new Database(join(path, "gateway.sqlite"), { readonly: true });
  ends.push(() => database.close());
  const booked = () =>
    database.query<{ id: string }, []>("SELECT receipt FROM ends ORDER BY receipt").values().flat();
  const journal = new DurableJournal({
    disk: folderDisk(path),
    firstFile: 1,
    fileBytes: 1e9,
    relaxed: false,
    defer: queueMicrotask,
    after() {},
  });
  const { keeper } = link(path);
  const store = new KeeperLedgerStore(new KeeperDatabase(database, keeper), keeper).shippedFrom(path, "n");
  const written = async (names: readonly string[]) => {
    for (const name of names) journal.append(end(name));
    await journal.flushed();
    const batch = journal.unapplied(names.length);
    journal.applied(names.length);
    return batch;
  };
  const first = await written(["a", "b"]);
  await store.apply(first, null);
  expect(booked()).toEqual(["rcpt_a", "rcpt_b"]);

  const torn = await written(["c", "d", "e"]);
  const file = join(path, "journal-00000001.log");
  const bytes = readFileSync(file);
  bytes[torn[0]!.bytes + 30]! ^= 1;
  writeFileSync(file, bytes);
  await store.apply(torn, null);
  expect(booked()).toHaveLength(5);

  const last = await written(["f"]);
  rmSync(file);
  // The answers of the first two were lost.
  for (const batch of [first, torn, last, last]) await store.apply(batch, null);
  expect(booked()).toEqual(["a", "b", "c", "d", "e", "f"].map((name) => `rcpt_${name}`));
  expect([...(await store.reached())]).toEqual([[1, last[0]!.bytes]]);
  await journal.close();
});
