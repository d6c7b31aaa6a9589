import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { SCENARIOS } from "../scenarios.ts";
import { broken, FIRST_SEEDS } from "./mutant.ts";

const MUTANTS = Object.values(SCENARIOS).flatMap(({ mutants }) => mutants.rules);

test.each(MUTANTS)("what is broken on purpose is still there: $breaks", (mutant) => {
  const whole = readFileSync(mutant.file, "utf8");
  expect(broken(mutant, whole)).not.toBe(whole);
});

test("each mutant that has a known seed is there once", () => {
  const names = MUTANTS.map(({ breaks }) => breaks);
  for (const name of Object.keys(FIRST_SEEDS))
    expect([name, names.filter((one) => one === name).length]).toEqual([name, 1]);
});
