import { expect, test } from "bun:test";
import { type Grant, LATE_MS, type Statement } from "../../src/ledger/authority.ts";
import { balanceCounter, type CounterId } from "../../src/ledger/counter.ts";
import type { Credit } from "../../src/ledger/credit.ts";
import { EpochFenced, LEASE_MS } from "../../src/ledger/node-lease.ts";
import { sql } from "../../src/store/database/database.ts";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { NodeAuthority, SqliteAuthority } from "../../src/store/ledger/grants.ts";
import { SqliteLedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import { SqliteRegistry } from "../../src/store/nodes/sqlite-registry.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";
import { end } from "./end-record.ts";
import { enterCredit } from "./enter-credit.ts";

const CAP = "day:key_1:0" as CounterId;
const BALANCE = "bal_1" as BalanceId;

function keeper() {
  const db = openDatabase(":memory:");
  const clock = new ManualClock(0);
  const calls: string[] = [];
  const registry = new SqliteRegistry(db, clock, () => {});
  const authority = new SqliteAuthority(
    db,
    clock,
    () => registry.alive(),
    (asker, { counter, inquiry }) => void calls.push(`${asker} ${counter} ${inquiry}`),
  );
  const store = new SqliteLedgerStore(new SqliteDatabase(db));
  return {
    db,
    clock,
    registry,
    node: new NodeAuthority(
      new SqliteDatabase(db),
      async (statements) => authority.settle(statements),
      () => sql`${clock.now() - LATE_MS}`,
    ),
    store,
    credit: (credit: Credit) => enterCredit(db, credit),
    calls,
    reserved: () =>
      db.query<{ reserved: number }, [string]>("SELECT reserved FROM counters WHERE id = ?").get(CAP)
        ?.reserved ?? 0,
    join(name: string): { epoch: number; seen: number } {
      const life = registry.join(name);
      registry.renew(name, life.epoch, life.seen);
      return life;
    },
    settle(ledger: string, more: Partial<Record<keyof Statement, unknown>>): Grant {
      return authority.settle([statement(ledger, more)])[0]!;
    },
  };
}

const statement = (ledger: string, more: Partial<Record<keyof Statement, unknown>>): Statement =>
  ({
    ledger,
    epoch: 1,
    number: 1,
    counter: CAP,
    used: 0,
    needed: 0,
    limit: 1_000,
    answeredInquiry: 0,
    inquiry: 0,
    ...more,
  }) as Statement;

/** What was charged for one request, on the balance and on the cap. */
const charged = (amount: number, name: number) => ({
  record: {
    ...end(name),
    charged: amount as NanoUsd,
    counters: [CAP, balanceCounter(BALANCE)],
    balance: BALANCE,
  },
  sequence: name,
  file: 1,
  bytes: name,
});

test("a counter that a node retires is spent by others, once all is shipped that the node has spent of it", async () => {
  const { join, settle, store, db } = keeper();
  const counter = "budget:bud_1~hash:day:0" as CounterId;
  const { epoch } = join("n0");
  const state = (number: number, used: number, most: number, retires = false) =>
    settle("n0", { counter, number, used, needed: used, requested: most, ...(retires ? { retires } : {}) });
  const rows = () => db.query("SELECT granted, shipped FROM grants WHERE counter = ?").all(counter);
  expect(state(1, 0, 600)).toMatchObject({ granted: 600 });
  expect(state(2, 400, 400, true).retired).toBeUndefined();
  expect(rows()).toEqual([{ granted: 400, shipped: 0 }]);
  const { record, ...position } = charged(400, 1);
  await store.ship("n0", epoch, [{ record: { ...record, counters: [counter] }, ...position }]);
  expect(state(3, 400, 400, true)).toMatchObject({ granted: 0, retired: true });
  expect(rows()).toEqual([]);
  // Its answer is lost, and an earlier statement is late.
  expect(state(4, 400, 400, true)).toMatchObject({ granted: 0, retired: true });
  expect(state(2, 400, 500)).toMatchObject({ granted: 0 });
  expect(rows()).toEqual([]);
  expect(state(5, 0, 900)).toMatchObject({ granted: 600, elsewhere: 400 });
  expect(state(4, 400, 400, true).retired).toBeUndefined();
  expect(rows()).toEqual([{ granted: 600, shipped: 0 }]);
});

test("a grant outlives the process that held it until its next life has read the journal", () => {
  const { join, settle } = keeper();
  const first = join("n0");
  settle("n0", { requested: 900 });
  join("n1");
  expect(settle("n1", { requested: 500 })).toMatchObject({ granted: 100, elsewhere: 900 });
  expect(join("n0").epoch).toBe(first.epoch + 1);
  expect(settle("n1", { number: 2, requested: 500 })).toMatchObject({ granted: 500 });
});

test("an epoch that is over is granted nothing, next to others that are", () => {
  const { join, settle } = keeper();
  for (const name of ["n0", "n0", "n1"]) join(name);
  expect(() => settle("n0", { requested: 10 })).toThrow(EpochFenced);
  expect(settle("n1", { requested: 10 })).toMatchObject({ granted: 10 });
});

test("what is shipped leaves the grant and is spent, once; an older life ships nothing", async () => {
  const { join, settle, store, reserved } = keeper();
  join("n0");
  settle("n0", { requested: 900 });
  await store.ship("n0", 1, [charged(100, 1), charged(50, 2)]);
  await store.ship("n0", 1, [charged(50, 2), charged(25, 3)]);
  expect([store.spent(CAP), reserved()]).toEqual([175, 725]);
  expect((await store.shipped("n0")).get(CAP)).toBe(175);
  expect(await store.reached("n0")).toEqual(new Map([[1, 3]]));
  expect(settle("n0", { number: 2, used: 200, requested: 2_000 })).toMatchObject({ granted: 1_000 });
  // A receipt that was deleted is not booked again: its place in the journal is known.
  expect(await store.fold(2_000 as EpochMs)).toBe(3);
  await store.ship("n0", 1, [charged(25, 3)]);
  expect(store.spent(CAP)).toBe(175 as NanoUsd);
  join("n0");
  await expect(store.ship("n0", 1, [charged(1, 4)])).rejects.toThrow(EpochFenced);
  expect([reserved(), (await store.audit()).drifts]).toEqual([0, []]);
});

test("credit is taken back as far as it is neither spent nor granted, once for each key", async () => {
  const { join, settle, store, credit } = keeper();
  join("n0");
  const at = 0 as EpochMs;
  credit({ balanceId: BALANCE, amount: 1_000 as NanoUsd, idempotencyKey: "in", note: null, at });
  const counter = balanceCounter(BALANCE);
  // Whatever a node says of the limit.
  expect(settle("n0", { counter, requested: 400, limit: 9_000 })).toMatchObject({ granted: 400, free: 600 });
  await store.ship("n0", 1, [charged(100, 1)]);
  const debit = { balanceId: BALANCE, idempotencyKey: "out", note: null, at };
  expect(await store.debit({ ...debit, amount: 601 as NanoUsd })).toEqual({ available: 600 as NanoUsd });
  expect(await store.debit({ ...debit, amount: "all" })).toMatchObject({ amount: -600 });
  expect(await store.debit({ ...debit, amount: "all" })).toMatchObject({ amount: -600 });
  expect(settle("n0", { counter, number: 2, used: 100, requested: 9_000 })).toMatchObject({ granted: 400 });
  expect((await store.credits(BALANCE, 9)).map(({ amount }) => amount as number)).toEqual([-600, 1_000]);
});

test("what a node was granted is claimed: what it gives back is nobody's, and what it spends is lost", async () => {
  const { join, settle, store, credit } = keeper();
  for (const name of ["n0", "n1"]) join(name);
  const at = 0 as EpochMs;
  credit({ balanceId: BALANCE, amount: 1_000 as NanoUsd, idempotencyKey: "in", note: null, at });
  const counter = balanceCounter(BALANCE);
  settle("n0", { counter, used: 0, requested: 700 });
  settle("n0", { counter, number: 2, used: 700, requested: 700 });
  await store.ship("n0", 1, [charged(100, 1)]);
  const debit = { balanceId: BALANCE, idempotencyKey: "payment:pay_1:back:1", note: null, at };
  const upTo = { ...debit, amount: { upTo: 950 as NanoUsd } };
  // All but the 100 that are spent: 300 are free, and 600 held.
  for (let times = 0; times < 2; times++)
    expect(await store.debit(upTo)).toMatchObject({ amount: -900, claimed: 600 });
  expect(await store.debit({ ...debit, idempotencyKey: "more", amount: "all" })).toEqual({
    available: ZERO_USD,
  });
  const [claim] = await store.claims("", 9);
  expect(claim).toMatchObject({ idempotencyKey: debit.idempotencyKey, claimed: 600 });
  expect(await store.decideClaim(claim!, at)).toBe(null);
  // Its grant is what it holds; it may not be used again.
  expect(settle("n0", { counter, number: 3, used: 700, requested: 700 })).toMatchObject({
    granted: 100,
    free: 0,
  });
  expect(settle("n1", { counter, needed: 1, requested: 10 })).toMatchObject({ granted: 0, short: true });
  expect(settle("n0", { counter, number: 4, used: 300, requested: 300 })).toMatchObject({ granted: 100 });
  expect(await store.decideClaim(claim!, at)).toBe(null);
  // Its last request was charged 50 of what is no longer there.
  await store.ship("n0", 1, [charged(50, 2)]);
  settle("n0", { counter, number: 5, used: 150, requested: 150 });
  expect([await store.decideClaim(claim!, at), await store.decideClaim(claim!, at)]).toEqual([
    50, 0,
  ] as NanoUsd[]);
  expect((await store.credits(BALANCE, 9)).map(({ amount }) => amount as number)).toEqual([50, -900, 1_000]);
  expect([await store.claims("", 9), (await store.audit()).drifts]).toEqual([[], []]);
  credit({ ...debit, amount: 10 as NanoUsd, idempotencyKey: "again" });
  expect(settle("n1", { counter, number: 2, requested: 30 })).toMatchObject({ granted: 10 });
});

test("credit that comes meanwhile covers a claim", async () => {
  const { join, settle, store, credit } = keeper();
  join("n0");
  const at = 0 as EpochMs;
  const first = { balanceId: BALANCE, amount: 1_000 as NanoUsd, idempotencyKey: "in", note: null, at };
  credit(first);
  const counter = balanceCounter(BALANCE);
  settle("n0", { counter, used: 0, requested: 700 });
  const debit = { ...first, idempotencyKey: "back", amount: { upTo: 1_000 as NanoUsd } };
  expect(await store.debit(debit)).toMatchObject({ amount: -1_000, claimed: 700 });
  credit({ ...first, idempotencyKey: "more" });
  expect(await store.decideClaim((await store.claims("", 9))[0]!, at)).toBe(ZERO_USD);
  expect(settle("n0", { counter, number: 2, used: 700, requested: 900 })).toMatchObject({ granted: 900 });
});

test("who runs short asks the others for what they do not use, and those that missed it find it", async () => {
  const { join, settle, calls, node, clock } = keeper();
  for (const name of ["n0", "n1"]) join(name);
  settle("n0", { requested: 1_000 });
  expect(settle("n1", { needed: 500, requested: 500, inquiry: 1 })).toMatchObject({
    spare: 1_000,
    answered: 0,
  });
  expect(calls).toEqual([`n1 ${CAP} 1`]);
  expect([await node.inquiries("n0"), await node.inquiries("n1")]).toMatchObject([[{ inquiry: 1 }], []]);
  settle("n0", { number: 2, used: 700, requested: 700, answeredInquiry: 1 });
  expect(await node.inquiries("n0")).toEqual([]);
  expect(settle("n1", { number: 2, needed: 500, requested: 500, inquiry: 1 })).toMatchObject({
    granted: 300,
    answered: 1,
    open: 700,
  });
  clock.advance(LEASE_MS);
  expect(settle("n1", { number: 3, needed: 500, requested: 500, inquiry: 2 })).toMatchObject({
    open: 0,
    answered: 2,
  });
});

test.each([
  ["day:key_1:0"],
  ["month:key_1:0"],
  ["rpm:key_1"],
  ["budget:bud_1:total:0"],
  ["run:bal_1/job:5"],
  ["calls:bal_1/job:5"],
])("%s is limited by what its owner last set, whatever a node says that does not know it", (counter) => {
  const { db, join, settle } = keeper();
  join("n0");
  db.run("INSERT INTO balances (id, created_at) VALUES ('bal_1', 0)");
  db.run(
    "INSERT INTO budgets (id, balance_id, name, cap, period) VALUES ('bud_1', 'bal_1', 'team', 50, 'total')",
  );
  db.run(
    "INSERT INTO runs (balance_id, name, started_at, used_at, cap, calls) VALUES ('bal_1', 'job', 5, 5, 50, 50)",
  );
  // The highest limit of a chain counts, whose keys may work for a while next to each other, but not one that was revoked.
  for (const [id, state, limit] of [
    ["key_1", "revoked", 900],
    ["key_2", "rotated", 40],
    ["key_3", "active", 50],
  ] as const) {
    db.run(
      `INSERT INTO keys (id, hash, prefix, balance_id, lineage, state, created_at, daily_limit, monthly_limit, rpm_limit, budgets)
         VALUES (?, ?, 'or-live-', 'bal_1', 'key_1', ?, 0, ?, ?, ?, '[]')`,
      [id, id, state, limit, limit, limit],
    );
  }
  expect(settle("n0", { counter, requested: 80 })).toMatchObject({ granted: 50, free: 0 });
  expect(settle("n0", { number: 2, counter, used: 30, needed: 40, requested: 40, limit: 40 })).toMatchObject({
    granted: 40,
    free: 0,
  });
});

test.each(["credited", "spent", "reserved"])(
  "an audit finds a sum that is not that of its entries: %s",
  async (sum) => {
    const { db, store } = keeper();
    expect((await store.audit()).drifts).toEqual([]);
    db.run(`INSERT INTO counters (id, ${sum}) VALUES ('${balanceCounter(BALANCE)}', 7)`);
    expect((await store.audit()).drifts).toMatchObject([{ account: balanceCounter(BALANCE), driftNano: 7n }]);
  },
);

test("counters of windows that are over are forgotten once all of them was shipped", async () => {
  const { join, settle, store, node, reserved } = keeper();
  join("n0");
  settle("n0", { requested: 100 });
  await node.retire("n0", [CAP]);
  expect(reserved()).toBe(100);
  await store.ship("n0", 1, [charged(100, 1)]);
  await node.retire("n0", [CAP]);
  expect(await store.shipped("n0")).toEqual(new Map());
});

test("a change is unseen until every node with a lease has noticed it, or its lease is over", () => {
  const { clock, registry, join } = keeper();
  const [first, second] = [join("n0"), join("n1")];
  const version = registry.recall(BALANCE, [balanceCounter(BALANCE)]);
  expect(registry.unseen(version)).toBe(true);
  expect(registry.renew("n0", first.epoch, first.seen)).toMatchObject([{ version, balance: BALANCE }]);
  expect(registry.renew("n0", first.epoch, version)).toEqual([]);
  expect(registry.unseen(version)).toBe(true);
  clock.advance(LEASE_MS);
  expect(registry.unseen(version)).toBe(false);
  expect(registry.renew("n1", second.epoch, second.seen)).toHaveLength(1);
});

test("another keeper counts with every lease there may be, and says that anything may have changed", () => {
  const { db, clock, registry, join } = keeper();
  const life = join("n0");
  registry.recall(BALANCE, []);
  const next = new SqliteRegistry(db, clock, () => {});
  const version = next.recall(BALANCE, []);
  expect([next.isAlive("n0"), next.unseen(version), next.close("n0")]).toEqual([true, true, "alive"]);
  expect(next.renew("n0", life.epoch, life.seen)).toEqual([
    { version, balance: null, key: null, counters: [""] },
  ]);
  expect(next.renew("n0", life.epoch, version)).toEqual([]);
  expect(next.unseen(version)).toBe(false);
  clock.advance(LEASE_MS);
  expect([next.close("n0"), next.close("n9")]).toEqual(["closed", "unknown"]);
  expect(() => next.renew("n0", life.epoch, version)).toThrow(EpochFenced);
  expect(next.list()).toMatchObject([{ name: "n0", state: "left", epoch: 1, reserved: 0 }]);
});

test("a node that missed up to 500 changes gets just these; one that missed what is forgotten, that anything changed", () => {
  const { registry, join } = keeper();
  const life = join("n0");
  const note = (count: number) => {
    for (let n = 0; n < count; n++) registry.recall(BALANCE, []);
  };
  note(1_000);
  expect(registry.renew("n0", life.epoch, life.seen)).toHaveLength(1_000);
  note(1);
  expect(registry.renew("n0", life.epoch, life.seen)).toMatchObject([{ balance: null, counters: [""] }]);
  const latest = life.seen + 1_001;
  const kept = registry.renew("n0", life.epoch, latest - 500);
  expect(kept.map(({ version }) => version)).toEqual(Array.from({ length: 500 }, (_, n) => latest - 499 + n));
  expect(registry.renew("n0", life.epoch, latest - 501)).toMatchObject([{ version: latest, balance: null }]);
});
