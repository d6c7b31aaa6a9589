import { expect, test } from "bun:test";
import { SqlKeyStore } from "../../src/store/customers/key-store.ts";
import { migratePostgres, Postgres, presentSchema } from "../../src/store/database/postgres.ts";
import { PostgresDatabase } from "../../src/store/database/postgres-database.ts";
import { PostgresLedgerStore } from "../../src/store/ledger/postgres-ledger-store.ts";
import { POSTGRES_SCHEMA } from "../../src/store/schema/migrations.ts";
import { versionOf } from "../../src/store/schema/schema-version.ts";
import { systemClock } from "../../src/units/clock.ts";
import { StoreUnusable } from "../../src/units/errors/bookkeeping.ts";
import {
  OLD_BOOKS,
  OLD_ROOTS,
  oldBooks,
  ROWS_WITHOUT_ROOTS,
  readOldBooks,
  readOldRoots,
} from "../store/first-release.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("a PostgreSQL database", (cluster) => {
  async function old(version: number): Promise<Postgres> {
    const url = await cluster.database();
    const postgres = new Postgres({ url, connections: 2, deadlineMs: 30_000 }, systemClock);
    await postgres.transaction(async (sql) => {
      await sql.unsafe(POSTGRES_SCHEMA.migrations[0]!).simple();
      await sql.unsafe(ROWS_WITHOUT_ROOTS).simple();
      await sql.unsafe(oldBooks(true)).simple();
      await sql`CREATE TABLE gateway_schema (one INT PRIMARY KEY, version BIGINT NOT NULL)`;
      await sql`INSERT INTO gateway_schema (one, version) VALUES (1, ${version})`;
    });
    return postgres;
  }

  test("of the first release has all that it had: keys with their roots, books, grants that nodes hold", async () => {
    const postgres = await old(POSTGRES_SCHEMA.first);
    await migratePostgres(postgres);
    const keys = new SqlKeyStore(new PostgresDatabase(postgres), systemClock);
    expect(await readOldRoots(keys)).toEqual(OLD_ROOTS);
    expect(await readOldBooks(keys, new PostgresLedgerStore(new PostgresDatabase(postgres)))).toMatchObject(
      OLD_BOOKS,
    );
    await postgres.close();
  });

  test("that a newer gateway migrated is used where that one says so, and keeps its version", async () => {
    const url = await cluster.database();
    const postgres = new Postgres({ url, connections: 2, deadlineMs: 30_000 }, systemClock);
    await migratePostgres(postgres);
    const own = versionOf(POSTGRES_SCHEMA);
    const setTo = (oldest: number) =>
      postgres.query((sql) => sql`UPDATE gateway_schema SET version = ${own + 1}, oldest_user = ${oldest}`);
    await setTo(own);
    await migratePostgres(postgres);
    expect(await postgres.transaction(presentSchema)).toEqual({ version: own + 1, oldestUser: own });
    await setTo(own + 1);
    await expect(migratePostgres(postgres)).rejects.toBeInstanceOf(StoreUnusable);
    await postgres.close();
  });

  test("from before it is refused", async () => {
    const postgres = await old(POSTGRES_SCHEMA.first - 1);
    expect(migratePostgres(postgres)).rejects.toBeInstanceOf(StoreUnusable);
    await postgres.close();
  });
});
