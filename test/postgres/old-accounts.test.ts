import { expect, test } from "bun:test";
import { PostgresKeyStore } from "../../src/store/postgres/key-store.ts";
import { POSTGRES_MIGRATIONS } from "../../src/store/postgres/migrations.ts";
import { migratePostgres, Postgres } from "../../src/store/postgres/postgres.ts";
import { PostgresStatements } from "../../src/store/postgres/statements.ts";
import { SqlAccountStore } from "../../src/store/sql/account-store.ts";
import { systemClock } from "../../src/units/clock.ts";
import { OLD_ACCOUNTS, OLD_ROWS, readOldAccounts } from "../store/old-accounts.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("a PostgreSQL database from before claims could be undone", (cluster) => {
  test("knows who may claim, and what can be undone", async () => {
    const url = await cluster.database();
    const postgres = new Postgres({ url, connections: 2, deadlineMs: 30_000 }, systemClock);
    await postgres.transaction(async (sql) => {
      for (const migration of POSTGRES_MIGRATIONS.slice(0, 10)) await sql.unsafe(migration).simple();
      await sql.unsafe(OLD_ROWS).simple();
      await sql`CREATE TABLE gateway_schema (one INT PRIMARY KEY, version BIGINT NOT NULL)`;
      await sql`INSERT INTO gateway_schema (one, version) VALUES (1, 10)`;
    });
    await migratePostgres(postgres);
    const told = async () => {};
    const keys = new PostgresKeyStore(postgres, systemClock, told);
    const accounts = new SqlAccountStore(new PostgresStatements(postgres, told), systemClock);
    expect(await readOldAccounts(keys, accounts)).toEqual(OLD_ACCOUNTS);
    await postgres.close();
  });
});
