import { unusedCases } from "../gateway/unused-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("balances and keys that nobody uses", (cluster) =>
  unusedCases(async () => `store: ${await cluster.database()}`),
);
