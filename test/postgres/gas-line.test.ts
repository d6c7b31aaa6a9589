import { migratePostgres, Postgres } from "../../src/store/database/postgres.ts";
import { PostgresDatabase } from "../../src/store/database/postgres-database.ts";
import { SqlGasLineStore } from "../../src/store/payments/gas-line-store.ts";
import { systemClock } from "../../src/units/clock.ts";
import { gasLineCases } from "../store/gas-line-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("nonces of gas accounts in PostgreSQL", (cluster) => {
  gasLineCases(async () => {
    const url = await cluster.database();
    const postgres = new Postgres({ url, connections: 4, deadlineMs: 30_000 }, systemClock);
    await migratePostgres(postgres);
    return { store: new SqlGasLineStore(new PostgresDatabase(postgres)), close: () => postgres.close() };
  });
});
