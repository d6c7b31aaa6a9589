import { expect, test } from "bun:test";
import { testTagCaps } from "../gateway/tag-caps.ts";
import { tagStorm } from "../process/tag-storm.ts";
import { rounds } from "../rounds.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("at three gateways on one PostgreSQL", (cluster) => {
  testTagCaps(3, async () => `store: ${await cluster.database()}`);
});

describeOnPostgres(
  "three gateways on one PostgreSQL that are killed in turns in the middle of tagged streams",
  (cluster) => {
    test("let no value of a tag cross its cap, and its sums are those of its receipts after each kill", async () => {
      const store = await cluster.database();
      const { served, ...found } = await tagStorm([store, store, store], rounds(2, 5, 50));
      expect(served).toBeGreaterThan(0);
      expect(found).toMatchObject({ crossed: [], wrong: [], drifts: 0 });
    }, 1_800_000);
  },
);
