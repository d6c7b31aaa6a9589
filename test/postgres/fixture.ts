import { afterAll, beforeAll, describe } from "bun:test";
import { atEnd } from "../at-end.ts";
import { Cluster, hasPostgres } from "./cluster.ts";

/**
 * Tests on PostgreSQL, in databases of their own on a cluster that the files of a process share; skipped where
 * there is none to run.
 */
export function describeOnPostgres(name: string, body: (cluster: Cluster) => void): void {
  describe.skipIf(!hasPostgres())(name, () => {
    beforeAll(begin, 600_000);
    body(SHARED);
  });
}

/** The same for tests that end their cluster and begin it again. */
export function describeOnOwnPostgres(name: string, body: (cluster: Cluster) => void): void {
  describe.skipIf(!hasPostgres())(name, () => {
    const cluster = new Cluster();
    beforeAll(() => cluster.create(), 600_000);
    body(cluster);
    afterAll(() => cluster.stop());
  });
}

const SHARED = new Cluster();
let beginning: Promise<void> | null = null;

function begin(): Promise<void> {
  if (beginning === null) {
    beginning = SHARED.create();
    atEnd(() => SHARED.stop());
  }
  return beginning;
}
