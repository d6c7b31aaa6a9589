import { TAKE_BACK_MUTANTS } from "./mutants/take-backs.ts";
import { option } from "./option.ts";
import { runSeeds } from "./seeds.ts";
import { simulateTakeBacks } from "./take-backs.ts";

/** So many `--histories` a seed, of `--payments` each, at one process or at several `--nodes`. */
const of = {
  histories: option("histories", 500),
  payments: option("payments", 3),
  nodes: option("nodes", 1),
};
await runSeeds({
  name: "sim:take-backs",
  seeds: 200,
  mutants: TAKE_BACK_MUTANTS,
  mutantOptions: ["--histories", "40"],
  run: async (seed) => ({ ...(await simulateTakeBacks(seed, of)) }),
  kept: "What customers have, spent and got back is what was paid; what was lost was spent.",
});
