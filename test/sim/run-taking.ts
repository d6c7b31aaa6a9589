import { showMutants } from "./mutants/mutant.ts";
import { TAKING_MUTANTS } from "./mutants/taking.ts";
import { option } from "./option.ts";
import { totalsOf } from "./shards.ts";
import { simulateTaking } from "./taking.ts";

/**
 * `bun run sim:taking --nodes N --seed N --seeds K --steps M`: limits that change under streams. With `--mutants`,
 * the first seed that notices each rule that is broken on purpose; with `--sqlite`, the Authority of a keeper.
 */
const [nodes, seed, seeds, steps] = [
  option("nodes", 1),
  option("seed", 1),
  option("seeds", 100),
  option("steps", 1_000),
];

const store = process.argv.includes("--sqlite") ? "sqlite" : "memory";

if (process.argv.includes("--mutants")) {
  await showMutants(TAKING_MUTANTS, ["test/sim/run-taking.ts", "--steps", "400"]);
  process.exit();
}

const started = performance.now();
const totals = await totalsOf({ seed, seeds }, async (current) => {
  try {
    return await simulateTaking(current, steps, nodes, store);
  } catch (error) {
    console.error(`\nreplay it with --nodes ${nodes} --seed ${current} --seeds 1 --steps ${steps}\n`);
    throw error;
  }
});
const seconds = Math.round((performance.now() - started) / 1_000);
const counts = Object.entries(totals).map(([name, count]) => `${count} ${name}`);
console.log(
  `${nodes} nodes, ${seeds * steps} steps in ${seconds} s: ${counts.join(", ")}; no limit crossed.`,
);
