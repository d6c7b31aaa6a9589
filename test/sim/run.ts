import { GATEWAY_MUTANTS } from "./mutants/gateway.ts";
import { showMutants } from "./mutants/mutant.ts";
import { option } from "./option.ts";
import { Progress } from "./progress.ts";
import { totalsOf } from "./shards.ts";
import { simulate } from "./world.ts";

/**
 * `bun run sim --seed N --steps M [--seeds K]`: replays one seed, or runs K of them from N on, on all cores. With
 * `--mutants`, the first seed that notices each rule that is broken on purpose.
 */
const seed = option("seed", 1);
const steps = option("steps", 1_000);
const seeds = option("seeds", 1);

if (process.argv.includes("--mutants")) {
  await showMutants(GATEWAY_MUTANTS, ["test/sim/run.ts", "--steps", "30"]);
  process.exit();
}

const started = performance.now();
const totals = seeds === 1 ? await replayed() : await totalsOf({ seed, seeds }, (one) => run(one));
const seconds = Math.round((performance.now() - started) / 100) / 10;
const { simulatedHours = 0, free, overAllowance, overRpm, overFreeRpm, overTpm, ...counts } = totals;
const listed = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
console.log(
  `${seeds} seeds × ${steps} steps in ${seconds} s, ${simulatedHours.toFixed(1)} simulated hours: ${listed.join(", ")}.`,
);
console.log(
  `Of these, ${free} free requests reached a host, ${overAllowance} found the day's allowance spent, and ${overRpm} the key's requests a minute, ${overFreeRpm} those of the Open Tier, ${overTpm} the key's tokens.`,
);
console.log(
  "No cap, rate or allowance crossed, nothing refused for one that had room, no acknowledged answer lost, no receipt doubled, drift 0.",
);

/** One seed may be long: how far it has come is told by its steps. */
async function replayed(): Promise<Record<string, number>> {
  const progress = new Progress(steps, "steps");
  return run(seed, (step) => progress.at(step));
}

async function run(one: number, onStep = (_step: number) => {}): Promise<Record<string, number>> {
  try {
    return { ...(await simulate(one, steps, onStep)) };
  } catch (error) {
    console.error(`\nseed ${one} failed; replay it with: bun run sim --seed ${one} --steps ${steps}\n`);
    throw error;
  }
}
