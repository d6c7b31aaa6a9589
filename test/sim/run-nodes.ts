import { simulateLeases } from "./leases.ts";
import { LEASE_MUTANTS } from "./mutants/leases.ts";
import { simulateNodes } from "./nodes.ts";
import { option } from "./option.ts";
import { runSeeds } from "./seeds.ts";

/**
 * Ledgers that share limits, and nodes that remember keys, for so many `--steps`; with `--sqlite`, the Authority and the
 * registry are those of a keeper; with `--regions`, half of the ledgers are in another region.
 */
const steps = option("steps", 400);
const store = process.argv.includes("--sqlite") ? "sqlite" : "memory";
const regions = process.argv.includes("--regions") ? 2 : 1;
const SIMULATIONS = {
  grants: (seed: number) => simulateNodes(seed, steps, store, regions),
  leases: (seed: number) => simulateLeases(seed, steps, store),
};

await runSeeds({
  name: "sim:nodes",
  seeds: 1_000,
  mutants: LEASE_MUTANTS,
  async run(seed) {
    const totals: Record<string, number> = {};
    for (const [what, simulate] of Object.entries(SIMULATIONS))
      for (const [name, count] of Object.entries(await simulate(seed))) totals[`${what} ${name}`] = count;
    return totals;
  },
  kept: "No limit crossed, nothing lost that was answered, nothing accepted after its revoke was answered, nobody refused who had room, credit spent to the last worst case.",
});
