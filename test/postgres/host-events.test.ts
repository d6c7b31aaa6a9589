import { test } from "bun:test";
import { hostThatFails } from "../gateway/host-event-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("three gateways on one PostgreSQL", (cluster) => {
  test("tell once that a host is down, and once that it serves again", async () => {
    await hostThatFails(3, `store: ${await cluster.database()}`);
  }, 120_000);
});
