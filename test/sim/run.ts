import { availableParallelism } from "node:os";
import { showMutants } from "./mutants/mutant.ts";
import { Progress } from "./progress.ts";
import { listed, type Options, type Scenario, simulate } from "./scenario.ts";
import { SCENARIOS, type ScenarioName } from "./scenarios.ts";

/**
 * `bun run test/sim/run.ts <scenario> [--seed N] [--seeds K] [its options]` runs the seeds on all cores; the first that
 * fails ends the program, and says how to replay it. `--mutants` shows the first seed that notices each rule that is
 * broken on purpose.
 */
const [name, ...given] = process.argv.slice(2);
if (!(name! in SCENARIOS)) throw new Error(`name one of ${Object.keys(SCENARIOS).join(", ")}`);
const scenario: Scenario = SCENARIOS[name as ScenarioName];
if (given.includes("--mutants")) await showMutants(name!, scenario.mutants);
else await runSeeds();

async function runSeeds(): Promise<void> {
  const { seed, seeds, ...of } = optionsOf({ seed: 1, seeds: scenario.seeds, ...scenario.options });
  const range: Seeds = { seed: Number(seed), seeds: Number(seeds) };
  const started = performance.now();
  const totals = range.seeds === 1 ? await runAlone(range.seed, of) : await totalsOf(range, of);
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  const says = scenario.says?.(totals) ?? [listed(totals)];
  console.log(`${seeds} seeds in ${seconds} s: ${says.join("\n")}`);
  console.log(scenario.kept);
}

function optionsOf(defaults: Options): Options {
  const unknown = given.find((word) => word.startsWith("--") && !(word.slice(2) in defaults));
  if (unknown !== undefined)
    throw new Error(
      `no option ${unknown}: ${Object.keys(defaults)
        .map((option) => `--${option}`)
        .join(", ")}`,
    );
  return Object.fromEntries(
    Object.entries(defaults).map(([option, otherwise]) => {
      const at = given.indexOf(`--${option}`);
      if (typeof otherwise === "boolean") return [option, at !== -1];
      const value = at === -1 ? otherwise : Number(given[at + 1]);
      if (!Number.isInteger(value)) throw new Error(`--${option} takes a whole number`);
      return [option, value];
    }),
  );
}

/** One may be long. */
function runAlone(seed: number, of: Options): Promise<Counts> {
  let progress: Progress | null = null;
  return run(seed, of, (step, steps) => {
    progress ??= new Progress(steps, "steps");
    progress.at(step);
  });
}

async function run(seed: number, of: Options, onStep?: (step: number, of: number) => void): Promise<Counts> {
  try {
    return await simulate(scenario, seed, of, onStep);
  } catch (error) {
    const command = name === "gateway" ? "sim" : `sim:${name}`;
    const own = given.join(" ").replaceAll(/--seeds? \d+ ?/g, "");
    console.error(`\nreplay it with: bun run ${command} --seed ${seed} --seeds 1 ${own}\n`);
    throw error;
  }
}

type Counts = Readonly<Record<string, number>>;

/** Seeds from `seed` on, and how many. */
interface Seeds {
  readonly seed: number;
  readonly seeds: number;
}

/** From all cores: each runs this program again, with every nth seed. One that fails ends the others. */
async function totalsOf(range: Seeds, of: Options): Promise<Counts> {
  const shard = process.env.SIM_SHARD;
  if (shard !== undefined) {
    const [first, step] = shard.split("/").map(Number) as [number, number];
    for (let at = first; at < range.seeds; at += step) process.send!(await run(range.seed + at, of));
    process.disconnect!();
    process.exit(0);
  }
  const shards = Math.min(availableParallelism(), range.seeds);
  const progress = new Progress(range.seeds, "seeds");
  const totals: Record<string, number> = {};
  let done = 0;
  const children = Array.from({ length: shards }, (_, at) =>
    Bun.spawn([process.execPath, ...process.argv.slice(1)], {
      env: { ...process.env, SIM_SHARD: `${at}/${shards}` },
      stdout: "inherit",
      stderr: "inherit",
      ipc(counts: Counts) {
        for (const [what, count] of Object.entries(counts)) totals[what] = (totals[what] ?? 0) + count;
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

async function ended(child: Bun.Subprocess, all: readonly Bun.Subprocess[]): Promise<number> {
  const code = await child.exited;
  if (code !== 0) for (const other of all) other.kill();
  return code;
}
