import { test } from "bun:test";
import { mailsOf } from "../gateway/mail-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("three gateways on one PostgreSQL", (cluster) => {
  test("mail owners ten events an hour at most, together", async () => {
    await mailsOf(3, `store: ${await cluster.database()}`);
  }, 120_000);
});
