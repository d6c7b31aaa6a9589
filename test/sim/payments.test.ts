import { expect, test } from "bun:test";
import { simulatePayments } from "./payments.ts";

test("1,500 payments with crashes, lies, reorganisations, refunds and disputes: what is here is what was credited, to the nano-dollar", async () => {
  const totals = {
    credited: 0,
    refunded: 0,
    disputed: 0,
    chargedBack: 0,
    crashes: 0,
    byPayers: 0,
    reorgs: 0,
  };
  for (const seed of [1, 2, 4]) {
    const one = await simulatePayments(seed, 500);
    for (const name of Object.keys(totals) as (keyof typeof totals)[]) totals[name] += one[name];
  }
  const { credited, ...rare } = totals;
  expect(credited).toBeGreaterThan(800);
  for (const [what, count] of Object.entries(rare)) expect(count, what).toBeGreaterThan(5);
});
