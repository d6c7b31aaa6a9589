import { testChangedLimits } from "../gateway/changed-limits.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("at three gateways on one PostgreSQL", (cluster) => {
  testChangedLimits(3, async () => `store: ${await cluster.database()}`);
});
