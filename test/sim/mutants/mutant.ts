import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import firstSeeds from "./first-seeds.json" with { type: "json" };

/** A rule that is broken on purpose, to see whether a simulator notices. */
export interface Mutant {
  readonly breaks: string;
  readonly file: string;
  /** Each text is in the file once. */
  readonly edits: readonly (readonly [from: string, to: string])[];
  /** Options of the scenario, added to those of all. */
  readonly options?: readonly string[];
}

type Edit = Mutant["edits"][number];

/** Mutants of one file: what each breaks, and its edits. */
export const mutantsOf = (
  file: string,
  mutants: Readonly<Record<string, Edit | readonly Edit[]>>,
  options?: readonly string[],
): Mutant[] =>
  Object.entries(mutants).map(([breaks, by]) => {
    const edits = isOne(by) ? [by] : by;
    return { breaks, file, edits, ...(options === undefined ? {} : { options }) };
  });

const isOne = (by: Edit | readonly Edit[]): by is Edit => typeof by[0] === "string";

/** What a scenario has to notice. */
export interface Mutants {
  readonly rules: readonly Mutant[];
  /** The scenario's. */
  readonly options?: readonly string[];
  /** One of so many shows the rarest. */
  readonly seeds?: number;
}

/** What the simulator said, and of which seed; null where it noticed nothing. */
type Caught = { readonly seed: number; readonly message: string } | null;

/**
 * Each mutant with a seed that shows it, in a copy of the source: the one that showed it before, as `first-seeds.json` has
 * it, or else the first of so many.
 */
export async function* hunt(
  scenario: string,
  { rules, options = [], seeds = SEEDS }: Mutants,
): AsyncGenerator<[Mutant, Caught]> {
  const program = ["test/sim/run.ts", scenario, ...options];
  const folder = mkdtempSync(join(tmpdir(), "mutants-"));
  try {
    for (const part of COPIED) cpSync(part, join(folder, part), { recursive: true });
    symlinkSync(join(process.cwd(), "node_modules"), join(folder, "node_modules"));
    const unbroken = await firstSeed(folder, program, { seed: 1, seeds: 1 });
    if (unbroken !== null) throw new Error(`nothing is broken yet, and it says: ${unbroken.message}`);
    for (const mutant of rules) {
      const path = join(folder, mutant.file);
      const whole = readFileSync(path, "utf8");
      writeFileSync(path, broken(mutant, whole));
      const run = [...program, ...(mutant.options ?? [])];
      const before = FIRST_SEEDS[mutant.breaks];
      const again = before === undefined ? null : await firstSeed(folder, run, { seed: before, seeds: 1 });
      yield [mutant, again ?? (await firstSeed(folder, run, { seed: 1, seeds }))];
      writeFileSync(path, whole);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The file's text with the mutant's edits. */
export function broken({ breaks, file, edits }: Mutant, whole: string): string {
  let text = whole;
  for (const [from, to] of edits) {
    if (text.split(from).length !== 2) throw new Error(`"${breaks}": not once in ${file}: ${from}`);
    text = text.replace(from, () => to);
  }
  return text;
}

/** `--mutants` of a scenario: a line for each, and exit code 1 if one got away. */
export async function showMutants(scenario: string, mutants: Mutants): Promise<void> {
  const { rules } = mutants;
  let missed = 0;
  for await (const [{ breaks }, caught] of hunt(scenario, mutants)) {
    if (caught === null) missed += 1;
    console.log(`| ${breaks} | ${caught === null ? "NOT NOTICED" : `${caught.message} | ${caught.seed}`} |`);
  }
  console.log(`${rules.length - missed} of ${rules.length} were noticed.`);
  process.exitCode = missed === 0 ? 0 : 1;
}

/** One process runs the seeds one after another, as a shard of the simulator, and reports each that is done. */
async function firstSeed(
  folder: string,
  program: readonly string[],
  { seed, seeds }: SeedRange,
): Promise<Caught> {
  let done = 0;
  const run = Bun.spawn([process.execPath, ...program, "--seed", String(seed), "--seeds", String(seeds)], {
    cwd: folder,
    env: { ...process.env, SIM_SHARD: "0/1" },
    stdout: "ignore",
    stderr: "pipe",
    ipc() {
      done += 1;
    },
  });
  const message = await new Response(run.stderr).text();
  if ((await run.exited) === 0) return null;
  return {
    seed: seed + done,
    message: /^(?:AuditFailure|\w*[Ee]rror): (.*)$/m.exec(message)?.[1] ?? "it failed",
  };
}

interface SeedRange {
  readonly seed: number;
  readonly seeds: number;
}

/** By what the mutant breaks. Where the code has changed since, another seed may show it, and the first one is looked for. */
export const FIRST_SEEDS: Readonly<Record<string, number>> = firstSeeds;

/** Enough for most that are known. */
const SEEDS = 100;
const COPIED = [
  "src",
  "test/sim",
  "test/fakes",
  "test/store",
  "test/surfaces",
  "package.json",
  "tsconfig.json",
  "bunfig.toml",
];
