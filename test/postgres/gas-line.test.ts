import { migratePostgres, Postgres } from "../../src/store/postgres/postgres.ts";
import { PostgresStatements } from "../../src/store/postgres/statements.ts";
import { SqlGasLineStore } from "../../src/store/sql/gas-line-store.ts";
import { systemClock } from "../../src/units/clock.ts";
import { gasLineCases } from "../store/gas-line-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("nonces of gas accounts in PostgreSQL", (cluster) => {
  gasLineCases(async () => {
    const url = await cluster.database();
    const postgres = new Postgres({ url, connections: 4, deadlineMs: 30_000 }, systemClock);
    await migratePostgres(postgres);
    return { store: new SqlGasLineStore(new PostgresStatements(postgres)), close: () => postgres.close() };
  });
});
