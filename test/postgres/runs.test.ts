import { testRuns } from "../gateway/runs.ts";
import { testRunsOfWorkers } from "../server/workers/run-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("at three gateways on one PostgreSQL", (cluster) => {
  testRuns(3, async () => `store: ${await cluster.database()}`);
});

describeOnPostgres("at three workers on one port, with PostgreSQL", (cluster) => {
  testRunsOfWorkers(() => cluster.database());
});
