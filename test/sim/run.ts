import { GATEWAY_MUTANTS } from "./mutants/gateway.ts";
import { option } from "./option.ts";
import { Progress } from "./progress.ts";
import { runSeeds } from "./seeds.ts";
import { simulate } from "./world.ts";

/** A gateway among hosts and clients, for so many `--steps`. */
const steps = option("steps", 1_000);
await runSeeds({
  name: "sim",
  seeds: 1,
  mutants: GATEWAY_MUTANTS,
  mutantOptions: ["--steps", "30"],
  async run(seed, alone) {
    // One seed may be long.
    const progress = new Progress(steps, "steps");
    return { ...(await simulate(seed, steps, (step) => alone && progress.at(step))) };
  },
  says({ simulatedHours = 0, free, overAllowance, overRpm, overFreeRpm, overTpm, ...counts }) {
    const listed = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
    return [
      `${simulatedHours.toFixed(1)} simulated hours, ${listed.join(", ")}.`,
      `Of these, ${free} free requests reached a host, ${overAllowance} found the day's allowance spent, and ${overRpm} the key's requests a minute, ${overFreeRpm} those of the Open Tier, ${overTpm} the key's tokens.`,
    ];
  },
  kept: "No cap, rate or allowance crossed, nothing refused for one that had room, no acknowledged answer lost, no receipt doubled, drift 0.",
});
