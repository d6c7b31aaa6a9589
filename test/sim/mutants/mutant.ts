import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A rule that is broken on purpose, to see whether a simulator notices. */
export interface Mutant {
  readonly breaks: string;
  readonly file: string;
  /** Each text is in the file once. */
  readonly edits: readonly (readonly [from: string, to: string])[];
  /** Of the simulator; none if it needs none. */
  readonly options?: readonly string[];
}

type Edit = Mutant["edits"][number];

/** Those of one file: what each breaks, and by which edit, or edits. */
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

/** What the simulator said, and of which seed; null where it noticed nothing. */
export type Caught = { readonly seed: number; readonly said: string } | null;

/** Each mutant with the first of so many seeds that shows it, in a copy of the source. */
export async function* hunt(
  mutants: readonly Mutant[],
  program: readonly string[],
  seeds: number,
): AsyncGenerator<[Mutant, Caught]> {
  const folder = mkdtempSync(join(tmpdir(), "mutants-"));
  try {
    for (const part of COPIED) cpSync(part, join(folder, part), { recursive: true });
    symlinkSync(join(process.cwd(), "node_modules"), join(folder, "node_modules"));
    const unbroken = await firstSeed(folder, program, 1);
    if (unbroken !== null) throw new Error(`nothing is broken yet, and it says: ${unbroken.said}`);
    for (const mutant of mutants) {
      const path = join(folder, mutant.file);
      const whole = readFileSync(path, "utf8");
      writeFileSync(path, broken(mutant, whole));
      yield [mutant, await firstSeed(folder, [...program, ...(mutant.options ?? [])], seeds)];
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

/** `--mutants` of a simulator: a line for each, and exit code 1 if one got away. */
export async function showMutants(mutants: readonly Mutant[], program: readonly string[]): Promise<void> {
  let missed = 0;
  for await (const [{ breaks }, caught] of hunt(mutants, program, SEEDS)) {
    if (caught === null) missed += 1;
    console.log(
      `| ${breaks} | ${caught === null ? `NOT NOTICED in ${SEEDS} seeds` : `${caught.said} | ${caught.seed}`} |`,
    );
  }
  console.log(`${mutants.length - missed} of ${mutants.length} were noticed.`);
  process.exitCode = missed === 0 ? 0 : 1;
}

/** One process runs the seeds one after another, as a shard of the simulator, and reports each that is done. */
async function firstSeed(folder: string, program: readonly string[], seeds: number): Promise<Caught> {
  let done = 0;
  const run = Bun.spawn([process.execPath, ...program, "--seed", "1", "--seeds", String(seeds)], {
    cwd: folder,
    env: { ...process.env, SIM_SHARD: "0/1" },
    stdout: "ignore",
    stderr: "pipe",
    ipc() {
      done += 1;
    },
  });
  const said = await new Response(run.stderr).text();
  if ((await run.exited) === 0) return null;
  return { seed: done + 1, said: /^(?:AuditFailure|\w*[Ee]rror): (.*)$/m.exec(said)?.[1] ?? "it failed" };
}

/** Enough for each that is known. */
export const SEEDS = 100;
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
