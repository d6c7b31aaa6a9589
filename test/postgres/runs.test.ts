import { testRuns } from "../gateway/runs.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("at three gateways on one PostgreSQL", (cluster) => {
  testRuns(3, async () => `store: ${await cluster.database()}`);
});
