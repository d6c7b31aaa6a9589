import { simulateHolds } from "./holds.ts";
import { HOLD_MUTANTS } from "./mutants/holds.ts";
import { showMutants } from "./mutants/mutant.ts";
import { option } from "./option.ts";
import { totalsOf } from "./shards.ts";

/**
 * `bun run sim:holds --seed N --seeds K`: so many runs of streams whose holds follow them. With `--mutants`, the
 * first seed that notices each rule that is broken on purpose.
 */
const seed = option("seed", 1);
const seeds = option("seeds", 250);
const steps = option("steps", 4_000);

if (process.argv.includes("--mutants")) {
  await showMutants(HOLD_MUTANTS, ["test/sim/run-holds.ts"]);
  process.exit();
}

const started = performance.now();
const totals = await totalsOf({ seed, seeds }, async (one) => {
  try {
    return { ...(await simulateHolds(one, steps)) };
  } catch (error) {
    console.error(`\nreplay it with: bun run sim:holds --seed ${one} --seeds 1 --steps ${steps}\n`);
    throw error;
  }
});
const seconds = Math.round((performance.now() - started) / 1_000);
const counts = Object.entries(totals).map(([name, count]) => `${count} ${name}`);
console.log(`${seeds} seeds × ${steps} steps in ${seconds} s: ${counts.join(", ")}.`);
console.log("No cap crossed, nothing owed beyond a hold or lost while there was room.");
