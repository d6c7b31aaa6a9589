import { testRuns } from "../gateway/runs.ts";
import { testLimitsOfWorkers } from "../server/workers/limit-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("at three gateways on one PostgreSQL", (cluster) => {
  testRuns(3, async () => `store: ${await cluster.database()}`);
});

describeOnPostgres("at three workers on one port, with PostgreSQL", (cluster) => {
  testLimitsOfWorkers(() => cluster.database());
});
