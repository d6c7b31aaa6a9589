import { expect, test } from "bun:test";
import { budgetCounter } from "../../src/ledger/counter.ts";
import { PostgresLedgerStore } from "../../src/store/postgres/ledger-store.ts";
import { POSTGRES_MIGRATIONS } from "../../src/store/postgres/migrations.ts";
import { migratePostgres, Postgres } from "../../src/store/postgres/postgres.ts";
import { systemClock } from "../../src/units/clock.ts";
import type { BudgetId } from "../../src/units/id.ts";
import { WINDOW_KINDS } from "../../src/units/window.ts";
import { KNOWN, NOW, oldBudgets } from "../store/old-budgets.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("a PostgreSQL database whose budgets were counted in one window", (cluster) => {
  test("knows what was spent in all", async () => {
    const url = await cluster.database();
    const postgres = new Postgres({ url, connections: 2, deadlineMs: 30_000 }, systemClock);
    await postgres.transaction(async (sql) => {
      for (const migration of POSTGRES_MIGRATIONS.slice(0, 11)) await sql.unsafe(migration).simple();
      await sql.unsafe(oldBudgets("counters", "id", ", node", ", 'n'")).simple();
      await sql`CREATE TABLE gateway_schema (one INT PRIMARY KEY, version BIGINT NOT NULL)`;
      await sql`INSERT INTO gateway_schema (one, version) VALUES (1, 11)`;
    });
    await migratePostgres(postgres);
    const store = new PostgresLedgerStore(postgres);
    for (const [budget, spent] of Object.entries(KNOWN)) {
      for (const kind of WINDOW_KINDS) {
        const known: number = await store.spent(budgetCounter(budget as BudgetId, kind, NOW));
        expect([budget, kind, known]).toEqual([budget, kind, spent[kind]]);
      }
    }
    expect((await store.audit()).drifts).toEqual([]);
    await postgres.close();
  });
});
