import { expect, test } from "bun:test";
import { simulateHolds } from "./holds.ts";
import { simulateLeases } from "./leases.ts";
import { simulateNodes } from "./nodes.ts";
import { simulateTaking } from "./taking.ts";
import { simulate } from "./world.ts";

/** Few: `.ci/run` runs many more. */
const SEEDS = 80;
const STEPS = 20;
const NODE_SEEDS = 8;
const NODE_STEPS = 1_500;
const HOLD_SEEDS = 6;
const HOLD_STEPS = 4_000;
const LEASE_SEEDS = 20;
const LEASE_STEPS = 400;
const KEEPER_SEEDS = 4;
const KEEPER_STEPS = 400;
const TAKING_STEPS = 400;

test(`${SEEDS} simulated runs with crashes, faults and lies: no cap, rate or allowance crossed, nothing acknowledged lost, drift 0`, async () => {
  const totals = {
    requests: 0,
    complete: 0,
    broken: 0,
    crashes: 0,
    changes: 0,
    free: 0,
    overAllowance: 0,
    overRpm: 0,
    overFreeRpm: 0,
    overTpm: 0,
    stopped: 0,
  };
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
  expect(totals.changes).toBeGreaterThan(SEEDS);
  expect(totals.free).toBeGreaterThan(SEEDS / 2);
  expect(totals.stopped).toBeGreaterThan(SEEDS / 50);
  expect(totals.overAllowance).toBeGreaterThan(SEEDS / 10);
  expect(totals.overRpm).toBeGreaterThan(SEEDS / 10);
  expect(totals.overFreeRpm).toBeGreaterThan(SEEDS / 20);
  expect(totals.overTpm).toBeGreaterThan(SEEDS / 10);
});

test("ledgers share one Authority, with journals or without: no limit is crossed, no promise lost, nobody refused who has room, all credit used", async () => {
  const totals = {
    admitted: 0,
    refused: 0,
    crashes: 0,
    closed: 0,
    committed: 0,
    debited: 0,
    drained: 0,
    free: 0,
    freeRefused: 0,
    grown: 0,
  };
  for (let seed = 1; seed <= NODE_SEEDS; seed++) {
    const summary = await simulateNodes(seed, NODE_STEPS).catch((error: Error) => {
      throw new Error(`replay it with: simulateNodes(${seed}, ${NODE_STEPS})\n${error.stack}`);
    });
    for (const name of Object.keys(totals) as (keyof typeof totals)[]) totals[name] += summary[name];
  }
  expect(totals.admitted).toBeGreaterThan(NODE_SEEDS * 20);
  expect(totals.crashes).toBeGreaterThan(NODE_SEEDS / 10);
  expect(totals.closed).toBeGreaterThan(NODE_SEEDS / 10);
  expect(totals.committed).toBeGreaterThan(NODE_SEEDS * 10);
  expect(totals.debited).toBeGreaterThan(NODE_SEEDS * 2);
  // Limits are near enough to be reached, or the test would prove nothing.
  expect(totals.refused).toBeGreaterThan(NODE_SEEDS);
  expect(totals.free).toBeGreaterThan(NODE_SEEDS * 10);
  expect(totals.freeRefused).toBeGreaterThan(NODE_SEEDS * 10);
  expect(totals.grown).toBeGreaterThan(NODE_SEEDS);
  expect(totals.drained / NODE_SEEDS).toBeGreaterThan(0.99);
});

test("holds follow their streams: they cover what hosts have done, no cap is crossed, nothing is lost for which limits have room", async () => {
  const totals = {
    admitted: 0,
    refused: 0,
    complete: 0,
    stopped: 0,
    grown: 0,
    shrunk: 0,
    grownAtEnd: 0,
    short: 0,
  };
  for (let seed = 1; seed <= HOLD_SEEDS; seed++) {
    const counts = await simulateHolds(seed, HOLD_STEPS).catch((error: Error) => {
      throw new Error(
        `replay it with: bun run sim:holds --seed ${seed} --seeds 1 --steps ${HOLD_STEPS}\n${error.stack}`,
      );
    });
    for (const name of Object.keys(totals) as (keyof typeof totals)[]) totals[name] += counts[name];
  }
  expect(totals.complete).toBeGreaterThan(HOLD_SEEDS * 20);
  expect(totals.refused).toBeGreaterThan(HOLD_SEEDS);
  expect(totals.stopped).toBeGreaterThan(HOLD_SEEDS / 4);
  expect(totals.grown).toBeGreaterThan(HOLD_SEEDS * 10);
  expect(totals.shrunk).toBeGreaterThan(HOLD_SEEDS * 10);
  expect(totals.grownAtEnd).toBeGreaterThan(HOLD_SEEDS / 2);
  expect(totals.short).toBeGreaterThan(HOLD_SEEDS / 4);
});

test("nodes remember keys under leases: what is revoked is accepted nowhere, and what was granted under a higher limit is used nowhere, once that was answered", async () => {
  const totals = { accepted: 0, refused: 0, unavailable: 0, revoked: 0, lowered: 0, crashes: 0 };
  for (let seed = 1; seed <= LEASE_SEEDS; seed++) {
    const summary = await simulateLeases(seed, LEASE_STEPS).catch((error: Error) => {
      throw new Error(`replay it with: simulateLeases(${seed}, ${LEASE_STEPS})\n${error.stack}`);
    });
    for (const name of Object.keys(totals) as (keyof typeof totals)[]) totals[name] += summary[name];
  }
  expect(totals.accepted).toBeGreaterThan(LEASE_SEEDS * 50);
  expect(totals.revoked).toBeGreaterThan(LEASE_SEEDS * 2);
  expect(totals.lowered).toBeGreaterThan(LEASE_SEEDS);
  expect(totals.unavailable).toBeGreaterThan(LEASE_SEEDS);
  expect(totals.crashes).toBeGreaterThan(LEASE_SEEDS / 2);
});

test.each([
  [1, 10],
  [5, 5],
])(
  "holds at %p nodes grow while limits, budgets and keys change: none beyond a limit of that moment",
  async (nodes, seeds) => {
    const totals = { admitted: 0, grown: 0, refused: 0, settled: 0, changes: 0 };
    for (let seed = 1; seed <= seeds; seed++) {
      const summary = await simulateTaking(seed, TAKING_STEPS, nodes).catch((error: Error) => {
        throw new Error(`replay it with: simulateTaking(${seed}, ${TAKING_STEPS}, ${nodes})\n${error.stack}`);
      });
      for (const name of Object.keys(totals) as (keyof typeof totals)[]) totals[name] += summary[name];
    }
    expect(totals.grown).toBeGreaterThan(seeds * 10);
    expect(totals.refused).toBeGreaterThan(seeds * 5);
    expect(totals.changes).toBeGreaterThan(seeds * 20);
  },
);

test("a keeper's Authority and registry on SQLite keep the same promises, however often it dies", async () => {
  let [admitted, revoked, changes] = [0, 0, 0];
  for (let seed = 1; seed <= KEEPER_SEEDS; seed++) {
    admitted += (await simulateNodes(seed, KEEPER_STEPS, "sqlite")).admitted;
    revoked += (await simulateLeases(seed, KEEPER_STEPS, "sqlite")).revoked;
    changes += (await simulateTaking(seed, KEEPER_STEPS, 5, "sqlite")).changes;
  }
  expect(admitted).toBeGreaterThan(KEEPER_SEEDS * 20);
  expect(revoked).toBeGreaterThan(KEEPER_SEEDS);
  expect(changes).toBeGreaterThan(KEEPER_SEEDS * 20);
});
