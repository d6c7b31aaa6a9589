import { availableParallelism } from "node:os";
import { relative } from "node:path";
import { type Mutant, showMutants } from "./mutants/mutant.ts";
import { option } from "./option.ts";
import { Progress } from "./progress.ts";

type Totals = Record<string, number>;

/** What a simulator's program runs, as `bun run <name>` with its own options, `--seed N` and `--seeds K`. */
export interface Simulation {
  readonly name: string;
  /** Unless `--seeds` says otherwise. */
  readonly seeds: number;
  /** `--mutants` shows the first seed that notices each of these rules, broken on purpose, with these options. */
  readonly mutants: readonly Mutant[];
  readonly mutantOptions?: readonly string[];
  /** Of one seed: what happened, in numbers. One that is run alone tells how far it has come. */
  run(seed: number, alone: boolean): Promise<Readonly<Totals>>;
  /** What is known once all seeds are through. */
  says?(totals: Totals): readonly string[];
  readonly kept: string;
}

/** Runs the seeds on all cores; the first that fails ends the program, and says how to replay it. */
export async function runSeeds(simulation: Simulation): Promise<void> {
  const { name, mutants, mutantOptions = [], run, says = listed, kept } = simulation;
  if (process.argv.includes("--mutants"))
    return showMutants(mutants, [relative(process.cwd(), process.argv[1]!), ...mutantOptions]);
  const seed = option("seed", 1);
  const seeds = option("seeds", simulation.seeds);
  const started = performance.now();
  const one = async (current: number) => {
    try {
      return { ...(await run(current, seeds === 1)) };
    } catch (error) {
      const own = process.argv
        .slice(2)
        .join(" ")
        .replaceAll(/--seeds? \d+ ?/g, "");
      console.error(`\nreplay it with: bun run ${name} --seed ${current} --seeds 1 ${own}\n`);
      throw error;
    }
  };
  const totals = seeds === 1 ? await one(seed) : await totalsOf({ seed, seeds }, one);
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  console.log(`${seeds} seeds in ${seconds} s: ${says(totals).join("\n")}`);
  console.log(kept);
}

const listed = (totals: Totals): readonly string[] => [
  `${Object.entries(totals)
    .map(([name, count]) => `${Math.round(count)} ${name}`)
    .join(", ")}.`,
];

/** Seeds from `seed` on, and how many. */
interface Seeds {
  readonly seed: number;
  readonly seeds: number;
}

/**
 * The totals of what `run` says of each seed, from all cores: each runs this program again, with every nth
 * seed. One that fails ends the others.
 */
async function totalsOf(range: Seeds, run: (seed: number) => Promise<Totals>): Promise<Totals> {
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
