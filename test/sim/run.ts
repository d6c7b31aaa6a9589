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
};
for (let current = seed; current < seed + seeds; current++) {
  try {
    const summary = await simulate(current, steps);
    for (const name of Object.keys(totals) as (keyof typeof totals)[]) totals[name] += summary[name];
  } catch (error) {
    console.error(
      `\nseed ${current} failed; replay it with: bun run sim --seed ${current} --steps ${steps}\n`,
    );
    throw error;
  }
  if ((current - seed + 1) % 200 === 0) console.error(`${current - seed + 1} of ${seeds} seeds`);
}
const seconds = Math.round((performance.now() - started) / 100) / 10;
const { simulatedHours, ...counts } = totals;
const listed = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
console.log(
  `${seeds} seeds × ${steps} steps in ${seconds} s, ${simulatedHours.toFixed(1)} simulated hours: ${listed.join(", ")}.`,
);
console.log("No cap crossed, no acknowledged answer lost, no receipt doubled, drift 0.");

function option(name: string, fallback: number): number {
  const at = process.argv.indexOf(`--${name}`);
  const value = at === -1 ? fallback : Number(process.argv[at + 1]);
  if (!Number.isInteger(value)) throw new Error(`--${name} takes a whole number`);
  return value;
}
