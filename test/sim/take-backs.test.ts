import { expect, test } from "bun:test";
import { simulateTakeBacks } from "./take-backs.ts";

test.each([
  [100, 1, 1],
  [60, 3, 1],
  [30, 3, 2],
])(
  "%d histories of %d card payments, refunded and disputed while requests hold their credit, at %d nodes: what is there, spent and given back is what was paid",
  async (histories, payments, nodes) => {
    const { claims, crashes } = await simulateTakeBacks(1, { histories, payments, nodes });
    for (const count of [claims, crashes]) expect(count).toBeGreaterThan(5);
  },
  60_000,
);
