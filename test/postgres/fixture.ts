import { afterAll, beforeAll, describe } from "bun:test";
import { Cluster, hasPostgres } from "./cluster.ts";

/**
 * Tests with a PostgreSQL of their own, which runs before the block's first hook and until after its last;
 * skipped where there is none to run.
 */
export function describeOnPostgres(name: string, body: (cluster: Cluster) => void): void {
  describe.skipIf(!hasPostgres())(name, () => {
    const cluster = new Cluster();
    beforeAll(() => cluster.create(), 60_000);
    body(cluster);
    afterAll(() => cluster.stop());
  });
}
