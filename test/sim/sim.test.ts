import { expect, test } from "bun:test";
import { simulate } from "./world.ts";

const SEEDS = 400;
const STEPS = 20;

test(`${SEEDS} simulated runs with crashes, faults and lies: no cap crossed, nothing acknowledged lost, drift 0`, async () => {
  const totals = { requests: 0, complete: 0, broken: 0, crashes: 0 };
  for (let seed = 1; seed <= SEEDS; seed++) {
    const summary = await simulate(seed, STEPS).catch((error: Error) => {
      throw new Error(`replay it with: bun run sim --seed ${seed} --steps ${STEPS}\n${error.stack}`);
    });
    for (const name of Object.keys(totals) as (keyof typeof totals)[]) totals[name] += summary[name];
  }
  // A simulation in which nothing happens proves nothing.
  expect(totals.complete).toBeGreaterThan(SEEDS);
  expect(totals.broken).toBeGreaterThan(SEEDS / 4);
  expect(totals.crashes).toBeGreaterThanOrEqual(SEEDS);
});
