import { testTagCaps } from "../gateway/tag-caps.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("at three gateways on one PostgreSQL", (cluster) => {
  testTagCaps(3, async () => `store: ${await cluster.database()}`);
});
