import { simulateHolds } from "./holds.ts";
import { HOLD_MUTANTS } from "./mutants/holds.ts";
import { option } from "./option.ts";
import { runSeeds } from "./seeds.ts";

/** Streams whose holds follow them, for so many `--steps`. */
const steps = option("steps", 4_000);
await runSeeds({
  name: "sim:holds",
  seeds: 250,
  mutants: HOLD_MUTANTS,
  run: async (seed) => ({ ...(await simulateHolds(seed, steps)) }),
  kept: "No cap crossed, nothing owed beyond a hold or lost while there was room.",
});
