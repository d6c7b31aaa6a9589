import { expect, test } from "bun:test";
import { rounds } from "../rounds.ts";
import { tagStorm } from "./tag-storm.ts";

test("a gateway that is killed in the middle of tagged streams: no value crosses its cap, and its sums are its receipts'", async () => {
  const { served, ...found } = await tagStorm(["sqlite"], rounds(3, 10, 50));
  expect(served).toBeGreaterThan(0);
  expect(found).toMatchObject({ crossed: [], wrong: [], drifts: 0 });
}, 600_000);
