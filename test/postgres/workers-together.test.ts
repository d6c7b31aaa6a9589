import { testWorkersTogether } from "../server/workers/together-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("what several workers show as one", (cluster) => {
  testWorkersTogether(() => cluster.database());
});
