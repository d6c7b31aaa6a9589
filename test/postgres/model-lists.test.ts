import { testModelLists } from "../server/workers/model-lists-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("model lists on three nodes that share PostgreSQL", (cluster) => {
  testModelLists(() => cluster.database());
});
