import { testHeldAmounts } from "../process/held-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("amounts that open requests of three nodes hold", (cluster) => {
  testHeldAmounts(async () => ({ processes: 3, config: `store: ${await cluster.database()}` }));
});
