import { describe, expect, test } from "bun:test";
import { hasPostgres } from "../postgres/cluster.ts";
import { networkMissing } from "./network.ts";
import { storm } from "./storm.ts";

const missing = hasPostgres() ? networkMissing() : "PostgreSQL cannot run";
if (missing !== null) console.warn(`skipped: storms (${missing})`);

describe.skipIf(missing !== null)("three gateways, PostgreSQL and its replica in a storm", () => {
  // Together they have every way of failing over.
  for (const [seed, rounds] of [[2, 5]] as const) {
    test(`keep every promise (seed ${seed}, ${rounds} rounds)`, async () => {
      const { findings, answered, revokes } = await storm(seed, rounds);
      expect(findings).toEqual([]);
      expect(answered).toBeGreaterThan(100);
      expect(revokes).toBeGreaterThan(0);
    }, 240_000);
  }
});
