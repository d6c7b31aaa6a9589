import { expect, test } from "bun:test";
import { migratePostgres, Postgres } from "../../src/store/database/postgres.ts";
import { PostgresDatabase } from "../../src/store/database/postgres-database.ts";
import { SqlCreditStore } from "../../src/store/ledger/credits.ts";
import { systemClock } from "../../src/units/clock.ts";
import { rounds } from "../rounds.ts";
import { Random } from "../sim/random.ts";
import {
  ChangingOperator,
  changesOfOneMoment,
  loggedDifferences,
  NEWEST_FIRST,
} from "../store/logged-changes.ts";
import { describeOnPostgres } from "./fixture.ts";

const CRASHES = rounds(60, 200, 1_000);
/** Who changes the same database at once. */
const OPERATORS = 6;

describeOnPostgres("the log of changes on PostgreSQL", (cluster) => {
  test("has the changes that were made, whenever the connections of a node end", async () => {
    const url = await cluster.database();
    const postgres = new Postgres({ url, connections: 4, deadlineMs: 30_000 }, systemClock);
    await migratePostgres(postgres);
    const db = new PostgresDatabase(postgres);
    const random = new Random(7);
    const killer = new Bun.SQL(url, { max: 1 });
    const operators = Array.from(
      { length: OPERATORS },
      (_, at) => new ChangingOperator(db, new SqlCreditStore(db), new Random(at)),
    );
    let [ended, failed] = [0, 0];
    while (ended < CRASHES) {
      const steps = operators.map((operator) =>
        operator.step().catch((error: Error) => {
          if (!/Unreachable|Contended/.test(error.name)) throw error;
          failed += 1;
        }),
      );
      for (let turns = random.below(30); turns > 0; turns--)
        await new Promise((resolve) => setImmediate(resolve));
      // In a transaction, so that something of it may be lost.
      const killed = await killer`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle' LIMIT 1`;
      ended += killed.count;
      await Promise.all(steps);
      if (random.below(20) === 0) expect(await loggedDifferences(db)).toEqual([]);
    }
    expect(await loggedDifferences(db)).toEqual([]);
    const [row] = await killer`SELECT count(*)::int AS rows FROM change_log`;
    expect(row.rows).toBeGreaterThan(CRASHES);
    expect(failed).toBeGreaterThan(0);
    if (CRASHES > 100) console.log(`${ended} connections ended, ${failed} changes failed, ${row.rows} rows`);
    await killer.close();
    await postgres.close();
  }, 600_000);

  test("lists changes of one millisecond in their order", async () => {
    const url = await cluster.database();
    const postgres = new Postgres({ url, connections: 1, deadlineMs: 30_000 }, systemClock);
    await migratePostgres(postgres);
    expect(await changesOfOneMoment(new PostgresDatabase(postgres))).toEqual(NEWEST_FIRST);
    await postgres.close();
  });
});
