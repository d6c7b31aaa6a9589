import { availableParallelism } from "node:os";
import { Progress } from "./progress.ts";

/** Seeds from `seed` on, and how many. */
export interface Seeds {
  readonly seed: number;
  readonly seeds: number;
}

type Totals = Record<string, number>;

/**
 * The totals of what `run` says of each seed, from all cores: each runs this program again, with every nth
 * seed. One that fails ends the others.
 */
export async function totalsOf(range: Seeds, run: (seed: number) => Promise<Totals>): Promise<Totals> {
  const shard = process.env.SIM_SHARD;
  if (shard !== undefined) {
    const [first, step] = shard.split("/").map(Number) as [number, number];
    await runShard(range, first, step, run);
    process.exit(0);
  }
  const shards = Math.min(availableParallelism(), range.seeds);
  const progress = new Progress(range.seeds, "seeds");
  const totals: Totals = {};
  let done = 0;
  const children = Array.from({ length: shards }, (_, at) =>
    Bun.spawn([process.execPath, ...process.argv.slice(1)], {
      env: { ...process.env, SIM_SHARD: `${at}/${shards}` },
      stdout: "inherit",
      stderr: "inherit",
      ipc(summary: Totals) {
        add(totals, summary);
        done += 1;
        progress.at(done);
      },
    }),
  );
  const ends = await Promise.all(children.map((child) => ended(child, children)));
  if (ends.some((code) => code !== 0)) process.exit(1);
  if (done !== range.seeds) throw new Error(`${range.seeds} seeds were to be run, and ${done} were`);
  return totals;
}

async function runShard(
  { seed, seeds }: Seeds,
  first: number,
  step: number,
  run: (seed: number) => Promise<Totals>,
): Promise<void> {
  for (let at = first; at < seeds; at += step) process.send!(await run(seed + at));
  process.disconnect!();
}

async function ended(child: Bun.Subprocess, all: readonly Bun.Subprocess[]): Promise<number> {
  const code = await child.exited;
  if (code !== 0) for (const other of all) other.kill();
  return code;
}

function add(totals: Totals, summary: Totals): void {
  for (const [name, count] of Object.entries(summary)) totals[name] = (totals[name] ?? 0) + count;
}
