import { simulateClaims } from "./claims.ts";
import { CLAIM_MUTANTS } from "./mutants/claims.ts";
import { option } from "./option.ts";
import { runSeeds } from "./seeds.ts";

/** An owner, a thief and the operator with every credential, for so many `--steps`. */
const steps = option("steps", 24);
await runSeeds({
  name: "sim:claims",
  seeds: 500,
  mutants: CLAIM_MUTANTS,
  mutantOptions: ["--steps", "60"],
  run: (seed) => simulateClaims(seed, steps),
  kept: "Nothing of a claim spent, read or changed anything after it was answered to be taken back, and the owner was never locked out.",
});
