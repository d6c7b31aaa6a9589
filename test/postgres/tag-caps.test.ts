import { testTagCaps } from "../gateway/tag-caps.ts";
import { testTagCapsOfWorkers } from "../server/workers/tag-cap-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("at three gateways on one PostgreSQL", (cluster) => {
  testTagCaps(3, async () => `store: ${await cluster.database()}`);
});

describeOnPostgres("at three workers on one port, with PostgreSQL", (cluster) => {
  testTagCapsOfWorkers(() => cluster.database());
});
