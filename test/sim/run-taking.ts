import { TAKING_MUTANTS } from "./mutants/taking.ts";
import { option } from "./option.ts";
import { runSeeds } from "./seeds.ts";
import { simulateTaking } from "./taking.ts";

/** Limits that change under streams at so many `--nodes`, for so many `--steps`; with `--sqlite`, the Authority of a keeper. */
const [nodes, steps] = [option("nodes", 1), option("steps", 1_000)];
const store = process.argv.includes("--sqlite") ? "sqlite" : "memory";
await runSeeds({
  name: "sim:taking",
  seeds: 100,
  mutants: TAKING_MUTANTS,
  mutantOptions: ["--steps", "400"],
  run: (seed) => simulateTaking(seed, steps, nodes, store),
  kept: "No limit crossed.",
});
