import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { CLAIM_MUTANTS } from "./claims.ts";
import { GATEWAY_MUTANTS } from "./gateway.ts";
import { HOLD_MUTANTS } from "./holds.ts";
import { LEASE_MUTANTS } from "./leases.ts";
import { broken, FIRST_SEEDS } from "./mutant.ts";
import { PAYMENT_MUTANTS } from "./payments.ts";
import { TAKE_BACK_MUTANTS } from "./take-backs.ts";
import { TAKING_MUTANTS } from "./taking.ts";

const MUTANTS = [
  CLAIM_MUTANTS,
  GATEWAY_MUTANTS,
  HOLD_MUTANTS,
  LEASE_MUTANTS,
  PAYMENT_MUTANTS,
  TAKE_BACK_MUTANTS,
  TAKING_MUTANTS,
];

test.each(MUTANTS.flat())("what is broken on purpose is still there: $breaks", (mutant) => {
  const whole = readFileSync(mutant.file, "utf8");
  expect(broken(mutant, whole)).not.toBe(whole);
});

test("each mutant that has a known seed is there once", () => {
  const names = MUTANTS.flat().map(({ breaks }) => breaks);
  for (const name of Object.keys(FIRST_SEEDS))
    expect([name, names.filter((one) => one === name).length]).toEqual([name, 1]);
});
