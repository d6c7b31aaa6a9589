import { migratePostgres, Postgres } from "../../src/store/postgres.ts";
import { PostgresLowCreditStore } from "../../src/store/postgres-low-credit-store.ts";
import { systemClock } from "../../src/units/clock.ts";
import { lowCreditCases } from "../store/low-credit-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("low credit, remembered in PostgreSQL", (cluster) => {
  lowCreditCases(async () => {
    const url = await cluster.database();
    const postgres = new Postgres({ url, connections: 4, deadlineMs: 5_000 }, systemClock);
    await migratePostgres(postgres);
    return {
      store: new PostgresLowCreditStore(postgres),
      async addAccount(id, email) {
        await postgres.query(
          (sql) =>
            sql`INSERT INTO accounts (id, email, created_at, proved_at) VALUES (${id}, ${email}, 1, 1)`,
        );
      },
      async addBalance(id, account) {
        await postgres.query(
          (sql) => sql`INSERT INTO balances (id, account_id, created_at) VALUES (${id}, ${account}, 1)`,
        );
      },
      async setMoney(balance, credited, spent) {
        await postgres.query(
          (sql) => sql`INSERT INTO counters (id, credited, spent)
            VALUES (${`balance:${balance}`}, ${credited}, ${spent})
            ON CONFLICT (id) DO UPDATE SET credited = excluded.credited, spent = excluded.spent`,
        );
      },
      async suspendAccount(id, reason) {
        await postgres.query((sql) => sql`UPDATE accounts SET suspended = ${reason} WHERE id = ${id}`);
      },
      close: () => postgres.close(),
    };
  });
});
