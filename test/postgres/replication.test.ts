import { beforeAll, expect, test } from "bun:test";
import { migratePostgres, Postgres } from "../../src/store/database/postgres.ts";
import { PostgresDatabase } from "../../src/store/database/postgres-database.ts";
import { PostgresLedgerStore } from "../../src/store/ledger/postgres-ledger-store.ts";
import { systemClock } from "../../src/units/clock.ts";
import { StoreUnreachable } from "../../src/units/errors/bookkeeping.ts";
import type { BalanceId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { describeOnOwnPostgres } from "./fixture.ts";
import { PostgresWire } from "./wire.ts";

/**
 * What one of two servers knows alone may be lost with it. A commit that waited for the replica is visible
 * after a restart, although the replica does not have it: nothing may be answered because of it.
 */
describeOnOwnPostgres("a PostgreSQL with a synchronous replica", (cluster) => {
  beforeAll(async () => {
    await cluster.replicate();
  });

  test("a credit that the replica does not have is not acknowledged, not even when it is asked for again", async () => {
    const postgres = connect(cluster.url(), 1_000);
    await migratePostgres(postgres);
    const store = new PostgresLedgerStore(new PostgresDatabase(postgres));
    const credit = {
      balanceId: "bal_1" as BalanceId,
      amount: 5 as NanoUsd,
      idempotencyKey: "once",
      note: null,
      at: systemClock.now(),
    };
    await postgres.query((sql) => sql`INSERT INTO balances (id, created_at) VALUES (${credit.balanceId}, 0)`);
    await cluster.endReplica();
    await expect(store.credit(credit)).rejects.toBeInstanceOf(StoreUnreachable);
    await cluster.end("fast");
    await cluster.begin();
    expect(await postgres.query((sql) => sql`SELECT amount FROM credits`)).toEqual([{ amount: 5 }]);
    await expect(store.credit(credit)).rejects.toBeInstanceOf(StoreUnreachable);
    await cluster.beginReplica();
    expect(await store.credit(credit)).toMatchObject({ amount: 5 });
    expect(await store.balance(credit.balanceId)).toEqual({ credited: 5 as NanoUsd, spent: 0 as NanoUsd });
    await postgres.close();
  }, 600_000);

  test("a journal is not forgotten because of ends that the replica does not have", async () => {
    const postgres = connect(cluster.url(), 1_000);
    await migratePostgres(postgres);
    const store = new PostgresLedgerStore(new PostgresDatabase(postgres));
    await cluster.endReplica();
    const ship = postgres.transaction(
      (sql) => sql`INSERT INTO shipped (node, file, bytes) VALUES ('node_1', 7, 100)`,
    );
    await expect(ship).rejects.toBeInstanceOf(StoreUnreachable);
    await cluster.end("fast");
    await cluster.begin();
    await expect(store.reached("node_1")).rejects.toBeInstanceOf(StoreUnreachable);
    await cluster.beginReplica();
    expect(await store.reached("node_1")).toEqual(new Map([[7, 100]]));
    await postgres.close();
  }, 600_000);

  test("a node that was led to the replica says that it cannot write, and finds the one that leads by itself", async () => {
    const wire = await PostgresWire.start(cluster.replicaPort);
    const postgres = connect(cluster.url().replace(`:${cluster.port}/`, `:${wire.port}/`), 5_000);
    const write = () => postgres.query((sql) => sql`CREATE TABLE IF NOT EXISTS written (one INT)`);
    await expect(write()).rejects.toBeInstanceOf(StoreUnreachable);
    wire.leadTo(cluster.port);
    await write();
    await postgres.close();
    wire.close();
  }, 600_000);

  const connect = (url: string, deadlineMs: number) =>
    new Postgres({ url, connections: 2, deadlineMs }, systemClock);
});
