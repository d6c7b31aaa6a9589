import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Cluster, hasPostgres } from "../../postgres/cluster.ts";
import { rounds } from "../../rounds.ts";
import { isFleet, KINDS, type Kind, upgrade } from "./upgrade.ts";

const NOW = { name: "now", command: null };
const NEXT = { name: "next", command: ["test/process/upgrade/next-version.ts"] };

describe("this release, and the next one with another migration, in turn on one store and under load", () => {
  const cluster = new Cluster();
  beforeAll(async () => {
    if (hasPostgres()) await cluster.create();
  }, 600_000);
  afterAll(() => cluster.stop());

  const tried = (Object.keys(KINDS) as Kind[]).slice(0, rounds(2, 4));
  const kinds = tried.filter((kind) => !isFleet(kind) || hasPostgres());
  test.each(kinds)(
    "%s: no client sees an error, and the books are in order after each step",
    async (kind) => {
      const store = isFleet(kind) ? await cluster.database() : null;
      const seen = await upgrade(kind, NOW, NEXT, { store, clients: 6, answers: 12 });
      expect(seen).toMatchObject({ errors: [], wrong: [], recovered: 6 });
      expect(seen.served).toBeGreaterThan(6 * 12);
    },
    600_000,
  );
});
