import { simulateHolds } from "./holds.ts";
import { option } from "./option.ts";
import { totalsOf } from "./shards.ts";

/** `bun run sim:holds --seed N --seeds K`: so many runs of streams whose holds follow them. */
const seed = option("seed", 1);
const seeds = option("seeds", 250);
const steps = option("steps", 4_000);

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
console.log("No cap crossed, nothing owed beyond a hold while there was room, nothing lost but at a stop.");
