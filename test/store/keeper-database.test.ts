import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Debit } from "../../src/ledger/credit.ts";
import { SqlKeyStore } from "../../src/store/customers/key-store.ts";
import { changesOne, finds, sql, touch } from "../../src/store/database/database.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { SqlCreditStore } from "../../src/store/ledger/credits.ts";
import { SqliteLedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import { committing, openKeeper } from "../../src/store/nodes/keeper.ts";
import { KeeperDatabase } from "../../src/store/nodes/keeper-node-store.ts";
import type { KeeperOperations } from "../../src/store/nodes/keeper-operations.ts";
import { SqlPaymentStore } from "../../src/store/payments/payment-store.ts";
import { ANSWERED_INQUIRY } from "../../src/store/schema/columns.ts";
import { epochMs, systemClock } from "../../src/units/clock.ts";
import { StoreContended } from "../../src/units/errors/bookkeeping.ts";
import { refuse } from "../../src/units/errors/refusal.ts";
import type { BalanceId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";
import { until } from "../fakes/until.ts";
import { paymentCases } from "./payment-cases.ts";

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** A keeper, what a node has of it, and a connection on which somebody else writes. */
function open() {
  const folder = mkdtempSync(join(tmpdir(), "keeper-"));
  const path = join(folder, "gateway.sqlite");
  const fail = (error: unknown) => {
    throw error;
  };
  const keeper = openKeeper({
    database: path,
    clock: systemClock,
    onFault: fail,
    onLost: fail,
    announce() {},
  });
  const here = new Database(path, { readonly: true });
  const others = new Database(path);
  // A test may write a thousand times behind the keeper's back: each sync would take as long as the disk does.
  others.run("PRAGMA synchronous = OFF");
  ends.push(async () => {
    await keeper.stop();
    here.close();
    others.close();
    rmSync(folder, { recursive: true });
  });
  let committed = 0;
  const commit: KeeperOperations["commit"] = async (...args) => {
    committed += 1;
    // As over a socket, others may come between.
    await null;
    return sent(await keeper.operations.commit(...sent(args)));
  };
  const noticed: number[] = [];
  const acknowledged = async (version: number) => void noticed.push(version);
  const database = new KeeperDatabase(here, { commit }, acknowledged);
  const otherNode = new KeeperDatabase(here, { commit });
  others.run("INSERT INTO balances (id, created_at) VALUES ('bal_a', 0), ('bal_b', 1)");
  return { keeper, database, otherNode, others, noticed, committed: () => committed };
}

/** Adds to when the balance was made, on what a node reads of it. */
const increment = (at: KeeperDatabase, by = 1, disturb = () => {}) =>
  at.change("bal_a", async () => {
    const [row] = await at.read<{ id: string; version: number; created_at: number }>`
      SELECT id, version, created_at FROM balances WHERE id = 'bal_a'`;
    disturb();
    const next = row!.created_at + by;
    return {
      result: next,
      statements: [
        sql`UPDATE balances SET suspended = 'abuse' WHERE id = 'bal_a'`,
        touch("balances", row!),
        sql`UPDATE balances SET created_at = ${next} WHERE id = 'bal_a'`,
      ],
      changes: [{ balance: "bal_a" as BalanceId, key: null, counters: [] }],
    };
  });

/** As it comes through a socket. */
const sent = <T>(message: T): T => JSON.parse(JSON.stringify(message));

const CHANGES = 200;

const stateOf = (db: Database) =>
  db.query("SELECT suspended, created_at, version FROM balances WHERE id = 'bal_a'").get();

describe("a change that a node decides and its keeper commits", () => {
  test("is answered once other nodes have noticed it", async () => {
    const { database, others, noticed, committed } = open();
    expect(await increment(database)).toBe(1);
    expect(stateOf(others)).toEqual({ suspended: "abuse", created_at: 1, version: 1 });
    expect(noticed).toHaveLength(1);
    expect(committed()).toBe(1);
  });

  test("is decided again where others came between, and whole where it is written", async () => {
    const { database, others, committed } = open();
    let left = 3;
    const disturb = () => {
      if (left-- > 0)
        others.run(
          "UPDATE balances SET created_at = created_at + 1, version = version + 1 WHERE id = 'bal_a'",
        );
    };
    expect(await increment(database, 100, disturb)).toBe(103);
    expect(stateOf(others)).toEqual({ suspended: "abuse", created_at: 103, version: 4 });
    expect(committed()).toBe(4);
  });

  test("is given up where others never stop, and nothing of it is written", async () => {
    const { database, others } = open();
    const disturb = () => others.run("UPDATE balances SET version = version + 1");
    await expect(increment(database, 1, disturb)).rejects.toThrow(StoreContended);
    expect(stateOf(others)).toMatchObject({ suspended: null, created_at: 0 });
  });

  test("that competes with many of two nodes is tried a few times at most", async () => {
    const { database, otherNode, others, committed } = open();
    const nodes = [database, otherNode];
    await Promise.all(Array.from({ length: CHANGES }, (_, n) => increment(nodes[n % 2]!)));
    expect(stateOf(others)).toMatchObject({ created_at: CHANGES });
    expect(committed()).toBeLessThan(CHANGES * 3);
  });

  test("is refused at once where too many wait for the same row", async () => {
    const { database, others } = open();
    const outcomes = await Promise.allSettled(Array.from({ length: 1_000 }, () => increment(database)));
    const made = outcomes.filter(({ status }) => status === "fulfilled").length;
    const reasons = outcomes.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
    expect(reasons.length).toBeGreaterThan(0);
    for (const reason of reasons) expect(reason).toBeInstanceOf(StoreContended);
    expect(stateOf(others)).toMatchObject({ created_at: made });
  });

  test("asks the keeper nothing when it is refused", async () => {
    const { database, committed } = open();
    const result = refuse("invalid_request", "no");
    expect(await database.change("bal_a", async () => ({ result, statements: [] }))).toBe(result);
    expect(committed()).toBe(0);
  });
});

const BAL_A = sql`FROM balances WHERE id = 'bal_a'`;

describe("a commit through a keeper", () => {
  for (const [name, statement] of [
    ["changes fewer rows than it must", changesOne(sql`UPDATE balances SET reclaims = 1 WHERE id = 'bal_x'`)],
    ["changes more rows than it must", changesOne(sql`UPDATE balances SET reclaims = 1`)],
    ["finds fewer rows than it must", finds(2, sql`SELECT id ${BAL_A}`)],
    ["finds more rows than it must", finds(0, sql`SELECT id ${BAL_A}`)],
    ["adds what is there already", sql`INSERT INTO balances (id, created_at) VALUES ('bal_b', 0)`],
  ] as const) {
    test(`of which a statement ${name} writes nothing`, async () => {
      const { database, others } = open();
      const first = changesOne(sql`UPDATE balances SET suspended = 'abuse' WHERE id = 'bal_a'`);
      expect(await database.commit([first, statement])).toBeNull();
      expect(stateOf(others)).toEqual({ suspended: null, created_at: 0, version: 0 });
    });
  }

  test("returns how many rows each statement has changed, or found", async () => {
    const { database } = open();
    const found = finds(1, sql`SELECT id ${BAL_A}`);
    const statements = [found, sql`UPDATE balances SET reclaims = 1`, sql`DELETE FROM sessions`];
    expect(await database.commit(statements)).toEqual([1, 2, 0]);
  });
});

describe("payments of a node, in the database that its keeper writes", () => {
  paymentCases(async () => {
    const { database, others } = open();
    const ledger = new SqliteLedgerStore(new SqliteDatabase(others));
    const clock = new ManualClock();
    return {
      store: new SqlPaymentStore(database, clock),
      credited: async (id) => ledger.credited(id),
      async debit(idempotencyKey, amount, agoMs) {
        const at = epochMs(clock.now() - agoMs);
        await ledger.debit({ balanceId: "bal_a", amount, idempotencyKey, note: null, at });
      },
      close: async () => {},
    };
  });
});

test("a node removes what nobody used, but nothing of which another was granted something meanwhile", async () => {
  const { database, others, noticed } = open();
  others.run(`INSERT INTO keys (id, hash, prefix, balance_id, lineage, state, created_at, budgets)
    VALUES ('key_a', 'a', 'a', 'bal_a', 'key_a', 'active', 0, '[]'),
      ('key_b', 'b', 'b', 'bal_b', 'key_b', 'active', 0, '[]')`);
  const keys = new SqlKeyStore(database, { now: () => epochMs(20) });
  let calls = 0;
  const forgotten: string[] = [];
  const { balances } = await keys.removeUnused(
    epochMs(10),
    { createdAt: epochMs(0), id: "" },
    {
      isInUse() {
        if (calls++ === 0)
          others.run(`INSERT INTO grants (counter, node, granted, used, number, ${ANSWERED_INQUIRY})
          VALUES ('rpm:key_b', 'n2', 5, 0, 1, 0)`);
        return false;
      },
      forget: (_, ids) => void forgotten.push(...ids),
    },
  );
  expect(balances).toEqual(["bal_a" as BalanceId]);
  expect(others.query("SELECT id FROM keys").all()).toEqual([{ id: "key_b" }]);
  expect(forgotten).toContain("bal_a");
  expect(noticed).toHaveLength(1);
});

test.each([
  ["credit", (at: SqlCreditStore, entry: Debit & { amount: NanoUsd }) => at.credit(entry)],
  ["debit", (at: SqlCreditStore, entry: Debit & { amount: NanoUsd }) => at.debit(entry)],
])("a repeated %s is answered at another node once the first is durable", async (_, send) => {
  const { database, others } = open();
  const entry = { balanceId: "bal_a" as BalanceId, note: null, at: epochMs(1), amount: 5 as NanoUsd };
  await new SqlCreditStore(database).credit({ ...entry, idempotencyKey: "first" });
  const synced = Promise.withResolvers<void>();
  const registry = { note: () => 0 };
  let requests = 0;
  const commit = committing(new SqliteDatabase(others), registry, () => {
    requests += 1;
    return synced.promise;
  });
  const here = new Database(others.filename, { readonly: true });
  ends.push(() => here.close());
  const answered: string[] = [];
  const answers = ["one node", "another"].map(async (name) => {
    const at = new SqlCreditStore(new KeeperDatabase(here, { commit }));
    await send(at, { ...entry, idempotencyKey: "repeated" });
    answered.push(name);
  });
  await until(() => requests === 2);
  expect(answered).toEqual([]);
  synced.resolve();
  await Promise.all(answers);
  expect(others.query("SELECT count(*) AS rows FROM credits").get()).toEqual({ rows: 2 });
});
