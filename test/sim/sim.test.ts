import { expect, test } from "bun:test";
import { CLAIMS } from "./claims.ts";
import { GATEWAY } from "./gateway.ts";
import { HOLDS } from "./holds.ts";
import { LEASES } from "./leases.ts";
import { NODES } from "./nodes.ts";
import { PAYMENTS } from "./payments.ts";
import { simulate } from "./scenario.ts";
import { TAKE_BACKS } from "./take-backs.ts";
import { TAKING } from "./taking.ts";

/** Few: `.ci/run` runs many more. */
const SEEDS = 80;

/**
 * Runs the seeds from 1 on. A simulation in which nothing happens proves nothing, so each thing happens more than so often
 * for each seed.
 */
async function happens<What extends string>(
  seeds: number,
  run: (seed: number) => Promise<Readonly<Record<What, number>>>,
  moreThan: Readonly<Partial<Record<What, number>>>,
): Promise<void> {
  const totals: Record<string, number> = {};
  for (let seed = 1; seed <= seeds; seed++) {
    const counts = await run(seed).catch((error: Error) => {
      throw new Error(`seed ${seed} failed: ${error.stack}`);
    });
    for (const what in moreThan) totals[what] = (totals[what] ?? 0) + counts[what];
  }
  for (const what in moreThan) expect(totals[what]! / seeds, what).toBeGreaterThan(moreThan[what]!);
}

test(`${SEEDS} simulated runs with crashes, faults and lies: no cap, rate or allowance crossed, nothing acknowledged lost, drift 0`, () =>
  happens(SEEDS, (seed) => simulate(GATEWAY, seed, { steps: 20 }), {
    complete: 1,
    broken: 1 / 4,
    crashes: 0.99,
    changes: 1,
    free: 1 / 2,
    stopped: 1 / 50,
    overAllowance: 1 / 10,
    overRpm: 1 / 10,
    overFreeRpm: 1 / 20,
    overTpm: 1 / 10,
  }));

test("ledgers share one Authority, with journals or without: no limit is crossed, no promise lost, nobody refused who has room, all credit used", () =>
  happens(8, (seed) => simulate(NODES, seed, { steps: 1_500 }), {
    admitted: 20,
    crashes: 1 / 10,
    closed: 1 / 10,
    committed: 10,
    debited: 2,
    // Limits are near enough to be reached, or the test would prove nothing.
    refused: 1,
    free: 10,
    freeRefused: 10,
    grown: 1,
    burst: 1,
    burstRefused: 1,
    drained: 0.99,
  }));

test("half of the ledgers are 40 ms away, and now and then cut off together: the same is kept", () =>
  happens(6, (seed) => simulate(NODES, seed, { steps: 1_000, regions: true }), {
    admitted: 20,
    regionCuts: 1,
    drained: 0.99,
  }));

test("holds follow their streams: they cover what hosts have done, no cap is crossed, nothing is lost for which limits have room", () =>
  happens(6, (seed) => simulate(HOLDS, seed), {
    complete: 20,
    refused: 1,
    stopped: 1 / 4,
    grown: 10,
    shrunk: 10,
    grownAtEnd: 1 / 2,
    short: 1 / 4,
  }));

test("nodes remember keys under leases: what is revoked is accepted nowhere, and what was granted under a higher limit is used nowhere, once that was answered", () =>
  happens(20, (seed) => simulate(LEASES, seed), {
    accepted: 50,
    revoked: 2,
    lowered: 1,
    unavailable: 1,
    crashes: 1 / 2,
  }));

test.each([
  [1, 10],
  [5, 5],
])(
  "holds at %p nodes grow while limits, budgets and keys change: none beyond a limit of that moment",
  (nodes, seeds) =>
    happens(seeds, (seed) => simulate(TAKING, seed, { steps: 400, nodes }), {
      grown: 10,
      refused: 5,
      changes: 20,
    }),
);

test("an owner, a thief and the operator with every credential: once a claim is taken back, nothing of it works, and the owner has all", () => {
  const { lost, ...rest } = Object.fromEntries(CLAIMS.counts.map((what) => [what, 1 / 40]));
  return happens(60, (seed) => simulate(CLAIMS, seed), rest);
});

test(
  "1,500 payments with crashes, lies, reorganisations, refunds and disputes: what is here is what was credited, to the nano-dollar",
  () =>
    happens(3, (seed) => simulate(PAYMENTS, seed, { payments: 500 }), {
      credited: 250,
      refunded: 2,
      disputed: 2,
      chargedBack: 2,
      crashes: 2,
      byPayers: 2,
      reorgs: 2,
    }),
  60_000,
);

test.each([
  [100, 1, 1],
  [60, 3, 1],
  [30, 3, 2],
])(
  "%d histories of %d card payments, refunded and disputed while requests hold their credit, at %d nodes: what is there, spent and given back is what was paid",
  (histories, payments, nodes) =>
    happens(1, (seed) => simulate(TAKE_BACKS, seed, { histories, payments, nodes }), {
      claims: 5,
      crashes: 5,
    }),
  60_000,
);
