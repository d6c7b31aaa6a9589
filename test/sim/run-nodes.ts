import { simulateLeases } from "./leases.ts";
import { simulateNodes } from "./nodes.ts";
import { Progress } from "./progress.ts";

/**
 * `bun run sim:nodes --seed N --seeds K`: so many runs of ledgers that share limits, and of nodes that
 * remember keys.
 */
const seed = option("seed", 1);
const seeds = option("seeds", 1_000);
const steps = option("steps", 400);

const started = performance.now();
const totals: Record<string, number> = {};
const progress = new Progress(seeds, "seeds");
for (let current = seed; current < seed + seeds; current++) {
  for (const simulate of [simulateNodes, simulateLeases]) {
    try {
      const summary = Object.entries(await simulate(current, steps));
      for (const [name, count] of summary) {
        const label = `${simulate === simulateNodes ? "grants" : "leases"} ${name}`;
        totals[label] = (totals[label] ?? 0) + count;
      }
    } catch (error) {
      console.error(`\nreplay it with: bun run sim:nodes --seed ${current} --seeds 1 --steps ${steps}\n`);
      throw error;
    }
  }
  progress.at(current - seed + 1);
}
const seconds = Math.round((performance.now() - started) / 1_000);
const counts = Object.entries(totals).map(([name, count]) => `${Math.round(count)} ${name}`);
console.log(`${seeds} seeds × ${steps} steps in ${seconds} s: ${counts.join(", ")}.`);
console.log(
  "No limit crossed, nothing lost that was answered, nothing accepted after its revoke was answered, nobody refused who had room, credit spent to the last worst case.",
);

function option(name: string, fallback: number): number {
  const at = process.argv.indexOf(`--${name}`);
  const value = at === -1 ? fallback : Number(process.argv[at + 1]);
  if (!Number.isInteger(value)) throw new Error(`--${name} takes a whole number`);
  return value;
}
