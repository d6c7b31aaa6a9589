import { expect, test } from "bun:test";
import { type ClaimTotals, simulateClaims } from "./claims.ts";

test("an owner, a thief and the operator with every credential: once a claim is taken back, nothing of it works, and the owner has all", async () => {
  const seeds = 60;
  const sums: Partial<ClaimTotals> = {};
  for (let seed = 1; seed <= seeds; seed++) {
    const totals = await simulateClaims(seed, 24);
    for (const [what, count] of Object.entries(totals) as [keyof ClaimTotals, number][])
      sums[what] = (sums[what] ?? 0) + count;
  }
  const { lost, ...happened } = sums;
  for (const [what, count] of Object.entries(happened)) expect(count, what).toBeGreaterThan(seeds / 40);
});
