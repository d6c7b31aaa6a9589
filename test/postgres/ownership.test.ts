import { expect, test } from "bun:test";
import { SqlAccountStore } from "../../src/store/customers/account-store.ts";
import { migratePostgres, Postgres } from "../../src/store/database/postgres.ts";
import { PostgresDatabase } from "../../src/store/database/postgres-database.ts";
import { systemClock } from "../../src/units/clock.ts";
import { ALL_KINDS, walk } from "../customers/accounts/ownership-walk.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("whose a balance is, in PostgreSQL", (cluster) => {
  test("claims, words on them, undoings and new secrets in any order", async () => {
    const took = new Set<string>();
    for (let seed = 1; seed <= 8; seed++) {
      const url = await cluster.database();
      const postgres = new Postgres({ url, connections: 2, deadlineMs: 30_000 }, systemClock);
      await migratePostgres(postgres);
      const did = await walk(seed, 40, async (clock) => ({
        store: new SqlAccountStore(new PostgresDatabase(postgres, async () => {}), clock),
        async addBalance(id, recovery) {
          await postgres.query(
            (sql) => sql`INSERT INTO balances (id, recovery_hash, created_at, setup_key)
              VALUES (${id}, ${recovery}, ${clock.now()}, 'key_1')`,
          );
        },
      }));
      await postgres.close();
      for (const kind of Object.keys(did)) took.add(kind);
    }
    expect([...took].sort()).toEqual(ALL_KINDS);
  });
});
