import { testRepeatsOfWorkers } from "../server/workers/repeat-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("repeats at three workers on one port", (cluster) =>
  testRepeatsOfWorkers(() => cluster.database()),
);
