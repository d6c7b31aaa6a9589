import { test } from "bun:test";
import { marginsOf } from "../gateway/margin-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("three gateways on one PostgreSQL", (cluster) => {
  test("add up what hosts charge, and tell of a negative margin once", async () => {
    await marginsOf(3, `store: ${await cluster.database()}`);
  }, 120_000);
});
