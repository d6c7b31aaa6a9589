import { simulateLeases } from "./leases.ts";
import { LEASE_MUTANTS } from "./mutants/leases.ts";
import { showMutants } from "./mutants/mutant.ts";
import { simulateNodes } from "./nodes.ts";
import { option } from "./option.ts";
import { totalsOf } from "./shards.ts";

/**
 * `bun run sim:nodes --seed N --seeds K`: so many runs of ledgers that share limits, and of nodes that
 * remember keys, on all cores; with `--sqlite`, the Authority and the registry are those of a keeper. With `--mutants`,
 * the first seed that notices each rule of leases that is broken on purpose.
 */
const seed = option("seed", 1);
const seeds = option("seeds", 1_000);
const steps = option("steps", 400);
const store = process.argv.includes("--sqlite") ? "sqlite" : "memory";

if (process.argv.includes("--mutants")) {
  await showMutants(LEASE_MUTANTS, ["test/sim/run-nodes.ts"]);
  process.exit();
}

const SIMULATIONS = [
  ["grants", simulateNodes],
  ["leases", simulateLeases],
] as const;

const started = performance.now();
const totals = await totalsOf({ seed, seeds }, run);
const seconds = Math.round((performance.now() - started) / 1_000);
const counts = Object.entries(totals).map(([name, count]) => `${Math.round(count)} ${name}`);
console.log(`${seeds} seeds × ${steps} steps in ${seconds} s: ${counts.join(", ")}.`);
console.log(
  "No limit crossed, nothing lost that was answered, nothing accepted after its revoke was answered, nobody refused who had room, credit spent to the last worst case.",
);

async function run(one: number): Promise<Record<string, number>> {
  const totals: Record<string, number> = {};
  for (const [what, simulate] of SIMULATIONS) {
    try {
      const summary = Object.entries(await simulate(one, steps, store));
      for (const [name, count] of summary) totals[`${what} ${name}`] = count;
    } catch (error) {
      console.error(
        `\nreplay it with: bun run sim:nodes --seed ${one} --seeds 1 --steps ${steps}${store === "sqlite" ? " --sqlite" : ""}\n`,
      );
      throw error;
    }
  }
  return totals;
}
