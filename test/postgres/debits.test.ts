import { testDebits } from "../gateway/debits.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("credit taken back at three gateways on one PostgreSQL", (cluster) => {
  testDebits(3, async () => `store: ${await cluster.database()}`);
});

describeOnPostgres("credit taken back at three gateways that keep nothing on disk", (cluster) => {
  testDebits(3, async () => `store: ${await cluster.database()}\njournal: postgres`);
});
