import { claimsAtProcesses, testClaims } from "../gateway/claims.ts";
import { open } from "../gateway/open.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("a payment taken back at three gateways on one PostgreSQL", (cluster) => {
  testClaims(async (config) => {
    const store = `store: ${await cluster.database()}\n`;
    const gateways = await Promise.all([1, 2, 3].map(() => open(config + store)));
    return {
      urls: gateways.map(({ url }) => url),
      async stop() {
        for (const gateway of gateways) await gateway.close();
      },
    };
  });
});

describeOnPostgres(
  "a payment taken back at two gateways that are killed, with their journals on disk",
  (cluster) => claimsAtProcesses(2, async () => `store: ${await cluster.database()}`),
);

describeOnPostgres(
  "a payment taken back at two gateways that are killed, with their journals in PostgreSQL",
  (cluster) => claimsAtProcesses(2, async () => `store: ${await cluster.database()}\njournal: postgres`),
);
