import { test } from "bun:test";
import { open } from "../gateway/open.ts";
import { findsReceipts } from "../gateway/receipt-filters.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("receipts on PostgreSQL", (cluster) => {
  test("are found by time, host, cost, error, state and model, by owners and the operator", async () => {
    const gateway = await open(`store: ${await cluster.database()}\n`);
    await findsReceipts(gateway);
    await gateway.close();
  });
});
