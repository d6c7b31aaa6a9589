import { Progress } from "./progress.ts";
import { simulate } from "./world.ts";

/** `bun run sim --seed N --steps M [--seeds K]`: replays one seed, or runs K of them from N on. */
const seed = option("seed", 1);
const steps = option("steps", 1_000);
const seeds = option("seeds", 1);

const started = performance.now();
const totals = {
  requests: 0,
  complete: 0,
  refused: 0,
  broken: 0,
  left: 0,
  unknown: 0,
  crashes: 0,
  simulatedHours: 0,
  free: 0,
  overAllowance: 0,
  overRpm: 0,
  overFreeRpm: 0,
  overTpm: 0,
};
const progress = new Progress(seeds * steps, "steps");
for (let current = seed; current < seed + seeds; current++) {
  try {
    const before = (current - seed) * steps;
    const summary = await simulate(current, steps, (step) => progress.at(before + step));
    for (const name of Object.keys(totals) as (keyof typeof totals)[]) totals[name] += summary[name];
  } catch (error) {
    console.error(
      `\nseed ${current} failed; replay it with: bun run sim --seed ${current} --steps ${steps}\n`,
    );
    throw error;
  }
}
const seconds = Math.round((performance.now() - started) / 100) / 10;
const { simulatedHours, free, overAllowance, overRpm, overFreeRpm, overTpm, ...counts } = totals;
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

function option(name: string, fallback: number): number {
  const at = process.argv.indexOf(`--${name}`);
  const value = at === -1 ? fallback : Number(process.argv[at + 1]);
  if (!Number.isInteger(value)) throw new Error(`--${name} takes a whole number`);
  return value;
}
