import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KeeperDatabase } from "../../src/store/keeper/database.ts";
import { openKeeper } from "../../src/store/keeper/keeper.ts";
import type { KeeperOperations } from "../../src/store/keeper/operations.ts";
import { SqlLowCreditStore } from "../../src/store/sql/low-credit-store.ts";
import { SqlPaymentStore } from "../../src/store/sql/payment-store.ts";
import { sql } from "../../src/store/sql/statement.ts";
import { LedgerStore } from "../../src/store/sqlite/ledger-store.ts";
import { NodeLedger } from "../../src/store/sqlite/node-ledger.ts";
import { epochMs, systemClock } from "../../src/units/clock.ts";
import { StoreContended } from "../../src/units/errors/bookkeeping.ts";
import { refuse } from "../../src/units/errors/refusal.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { ManualClock } from "../fakes/clock.ts";
import { lowCreditCases, sqliteLowCredit } from "./low-credit-cases.ts";
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
  ends.push(async () => {
    await keeper.stop();
    here.close();
    others.close();
    rmSync(folder, { recursive: true });
  });
  let performed = 0;
  const perform: KeeperOperations["perform"] = async (...args) => {
    performed += 1;
    // As over a socket, others may come between.
    await null;
    return sent(await keeper.operations.perform(...sent(args)));
  };
  const noticed: number[] = [];
  const acknowledged = async (version: number) => void noticed.push(version);
  const database = new KeeperDatabase(here, { perform }, acknowledged);
  const otherNode = new KeeperDatabase(here, { perform });
  return { keeper, database, otherNode, others, noticed, performed: () => performed };
}

/** As it comes through a socket. */
const sent = <T>(message: T): T => JSON.parse(JSON.stringify(message));

const CHANGES = 200;

const suspendedOf = (db: Database) => db.query("SELECT suspended FROM balances WHERE id = 'bal_a'").get();

describe("a transaction that a node rehearses and its keeper performs", () => {
  test("reads what it has written itself, and what only the keeper can answer", async () => {
    const { database, others, noticed, performed } = open();
    others.run("INSERT INTO balances (id, created_at) VALUES ('bal_a', 1)");
    const answers = await database.change(function* () {
      yield* sql`UPDATE balances SET suspended = 'abuse' WHERE id = 'bal_a'`;
      const read = yield* sql`SELECT suspended FROM balances WHERE id = 'bal_a'`;
      const returned = yield* sql`UPDATE balances SET suspended = 'fraud' RETURNING id, suspended`;
      const again = yield* sql`SELECT suspended FROM balances WHERE id = 'bal_a'`;
      const changes = [{ balance: "bal_a" as BalanceId, key: null, counters: [] }];
      return { result: [read, returned, again], changes };
    });
    expect(answers).toEqual([
      [{ suspended: "abuse" }],
      [{ id: "bal_a", suspended: "fraud" }],
      [{ suspended: "fraud" }],
    ]);
    expect(suspendedOf(others)).toEqual({ suspended: "fraud" });
    expect(noticed).toHaveLength(1);
    expect(performed()).toBe(4);
  });

  test("is decided again where others came between, and whole where it is written", async () => {
    const { database, others } = open();
    others.run("INSERT INTO balances (id, created_at) VALUES ('bal_a', 0)");
    let disturbed = 0;
    const next = await database.write(function* () {
      const [row] = yield* sql<{ created_at: number }>`SELECT created_at FROM balances`;
      const [last] = yield* sql<{ id: string }>`UPDATE balances SET suspended = 'abuse' RETURNING id`;
      if (disturbed++ < 3) others.run("UPDATE balances SET created_at = created_at + 1");
      yield* sql`UPDATE balances SET created_at = ${row!.created_at + 100}`;
      return [row!.created_at + 100, last!.id];
    });
    expect(next).toEqual([103, "bal_a"]);
    expect(others.query("SELECT created_at FROM balances").get()).toEqual({ created_at: 103 });
  });

  test("is given up where others never stop, and nothing of it is written", async () => {
    const { database, others } = open();
    others.run("INSERT INTO balances (id, created_at) VALUES ('bal_a', 0)");
    const done = database.write(function* () {
      yield* sql`SELECT created_at FROM balances`;
      others.run("UPDATE balances SET created_at = created_at + 1");
      yield* sql`UPDATE balances SET suspended = 'abuse'`;
    });
    await expect(done).rejects.toThrow(StoreContended);
    expect(suspendedOf(others)).toEqual({ suspended: null });
  });

  test("that competes with many of two nodes is tried a few times at most", async () => {
    const { database, otherNode, others, performed } = open();
    others.run("INSERT INTO balances (id, created_at) VALUES ('bal_a', 0)");
    let now = 1_000_000;
    const increment = (at: KeeperDatabase) => {
      // As those that count what has not expired: each reads by a time of its own.
      const before = now++;
      return at.write(function* () {
        const [row] = yield* sql<{
          created_at: number;
        }>`SELECT created_at FROM balances WHERE created_at < ${before}`;
        yield* sql`UPDATE balances SET created_at = ${row!.created_at + 1}`;
      });
    };
    const changes = Array.from({ length: CHANGES }, (_, n) => increment(n % 2 === 0 ? database : otherNode));
    await Promise.all(changes);
    expect(others.query("SELECT created_at FROM balances").get()).toEqual({ created_at: CHANGES });
    expect(performed()).toBeLessThan(CHANGES * 5);
  });

  test("is refused at once where too many wait for the same row", async () => {
    const { database, others } = open();
    others.run("INSERT INTO balances (id, created_at) VALUES ('bal_a', 0)");
    const increments = Array.from({ length: 1_000 }, () =>
      database.write(function* () {
        const [row] = yield* sql<{ created_at: number }>`SELECT created_at FROM balances`;
        yield* sql`UPDATE balances SET created_at = ${row!.created_at + 1}`;
      }),
    );
    const outcomes = await Promise.allSettled(increments);
    const made = outcomes.filter(({ status }) => status === "fulfilled").length;
    const reasons = outcomes.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
    expect(reasons.length).toBeGreaterThan(0);
    for (const reason of reasons) expect(reason).toBeInstanceOf(StoreContended);
    expect(others.query("SELECT created_at FROM balances").get()).toEqual({ created_at: made });
  });

  test("asks the keeper nothing when it is refused, and fails as in one process", async () => {
    const { database, others, performed } = open();
    const refusal = refuse("invalid_request", "no");
    const refused = database.change(function* () {
      yield* sql`SELECT * FROM balances`;
      return { result: refusal, changes: [] };
    });
    expect(await refused).toBe(refusal);
    expect(performed()).toBe(0);
    others.run("INSERT INTO balances (id, created_at) VALUES ('bal_a', 0)");
    const twice = database.write(function* () {
      yield* sql`UPDATE balances SET suspended = 'abuse'`;
      yield* sql`INSERT INTO balances (id, created_at) VALUES ('bal_a', 0)`;
    });
    await expect(twice).rejects.toThrow("UNIQUE");
    const broken = database.write(function* () {
      yield* sql`UPDATE balances SET suspended = 'abuse'`;
      throw new Error("decided wrongly");
    });
    await expect(broken).rejects.toThrow("decided wrongly");
    expect(suspendedOf(others)).toEqual({ suspended: null });
  });
});

describe("payments of a node, in the database that its keeper writes", () => {
  paymentCases(async () => {
    const { database, others } = open();
    others.run("INSERT INTO balances (id, created_at) VALUES ('bal_a', 1), ('bal_b', 1)");
    const ledger = new LedgerStore(others);
    const nodes = new NodeLedger(others, ledger);
    const clock = new ManualClock();
    return {
      store: new SqlPaymentStore(database, clock),
      credited: async (id) => ledger.credited(id),
      async debit(idempotencyKey, amount, agoMs) {
        const at = epochMs(clock.now() - agoMs);
        nodes.debit({ balanceId: "bal_a", amount, idempotencyKey, note: null, at });
      },
      close: async () => {},
    };
  });
});

describe("low credit, remembered by a keeper", () => {
  lowCreditCases(async () => {
    const { database, others } = open();
    return sqliteLowCredit(others, new SqlLowCreditStore(database));
  });
});
