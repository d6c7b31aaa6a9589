import { Fleet } from "../process/contention.ts";
import { testContention } from "../process/contention-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("two nodes on one PostgreSQL", (cluster) => {
  testContention(async () => Fleet.start(2, `store: ${await cluster.database()}`));
});
