import { expect, test } from "bun:test";
import { webhookStorm } from "../process/webhook-storm.ts";
import { rounds } from "../rounds.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("three gateways on one PostgreSQL that are killed in turns", (cluster) => {
  test("send each event of low credit under one id, and lose none", async () => {
    const store = await cluster.database();
    const { balances, ...found } = await webhookStorm([store, store, store], rounds(2, 5, 30));
    expect(balances).toBeGreaterThan(0);
    expect(found).toMatchObject({ missing: [], withSeveralIds: 0, drifts: 0 });
  }, 600_000);
});
