import { testHeldAmounts } from "../process/held-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("amounts that open requests of three nodes hold", (cluster) => {
  testHeldAmounts({ processes: 3, config: async () => `store: ${await cluster.database()}` });
});
