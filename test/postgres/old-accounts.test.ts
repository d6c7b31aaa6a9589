import { expect, test } from "bun:test";
import { PostgresKeyStore } from "../../src/store/postgres/key-store.ts";
import { POSTGRES_MIGRATIONS } from "../../src/store/postgres/migrations.ts";
import { migratePostgres, Postgres } from "../../src/store/postgres/postgres.ts";
import { PostgresStatements } from "../../src/store/postgres/statements.ts";
import { SqlAccountStore } from "../../src/store/sql/account-store.ts";
import { systemClock } from "../../src/units/clock.ts";
import {
  OLD_ACCOUNTS,
  OLD_ROOTS,
  OLD_ROWS,
  ROWS_WITHOUT_ROOTS,
  readOldAccounts,
  readOldRoots,
} from "../store/old-accounts.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("a PostgreSQL database from before claims could be undone", (cluster) => {
  /** With the old rows, migrated so far; then with these, and the rest of the way. */
  async function migrated(version: number, rows: string) {
    const url = await cluster.database();
    const postgres = new Postgres({ url, connections: 2, deadlineMs: 30_000 }, systemClock);
    await postgres.transaction(async (sql) => {
      for (const migration of POSTGRES_MIGRATIONS.slice(0, 10)) await sql.unsafe(migration).simple();
      await sql.unsafe(OLD_ROWS).simple();
      for (const migration of POSTGRES_MIGRATIONS.slice(10, version)) await sql.unsafe(migration).simple();
      await sql.unsafe(rows).simple();
      await sql`CREATE TABLE gateway_schema (one INT PRIMARY KEY, version BIGINT NOT NULL)`;
      await sql`INSERT INTO gateway_schema (one, version) VALUES (1, ${version})`;
    });
    await migratePostgres(postgres);
    const told = async () => {};
    const keys = new PostgresKeyStore(postgres, systemClock, told);
    const accounts = new SqlAccountStore(new PostgresStatements(postgres, told), systemClock);
    return { keys, accounts, postgres };
  }

  test("knows who may claim, and what can be undone", async () => {
    const { keys, accounts, postgres } = await migrated(10, "SELECT 1");
    expect(await readOldAccounts(keys, accounts)).toEqual(OLD_ACCOUNTS);
    await postgres.close();
  });

  test("and one from before roots knows which keys derive from a claim", async () => {
    const { keys, postgres } = await migrated(19, ROWS_WITHOUT_ROOTS);
    expect(await readOldRoots(keys)).toEqual(OLD_ROOTS);
    await postgres.close();
  });
});
