import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { Batch, type Limits, type Outcome } from "../runner/batch.ts";
import type { Mutant } from "./mutants.ts";
import { withProbes } from "./probes.ts";

export type Result = "killed" | "killed by types" | "killed by wider" | "hung" | "survived";

/** What came of a mutant: `by` is the first test that failed. */
export interface Verdict {
  readonly result: Result;
  readonly by: string;
}

/** A test file while nothing is broken: whether it passes, how long it takes, and which of the mutants it comes to. */
export interface Reach {
  readonly test: string;
  readonly passes: boolean;
  readonly seconds: number;
  /** By their place in what was given to `reach`. */
  readonly reached: readonly number[];
}

/** A copy of the working tree, in which one mutant at a time is tried. */
export class Bench {
  readonly folder = mkdtempSync(join(tmpdir(), "mutation-"));
  private batch: Batch | null = null;
  private checker: Bun.Subprocess | null = null;

  constructor(root: string) {
    for (const file of sourceFiles(root)) {
      mkdirSync(dirname(join(this.folder, file)), { recursive: true });
      cpSync(join(root, file), join(this.folder, file));
    }
    // The folder itself is not shared, because tests keep there what they build.
    const packages = join(root, "node_modules");
    mkdirSync(join(this.folder, "node_modules"));
    for (const name of readdirSync(packages))
      if (name !== ".cache") symlinkSync(resolve(packages, name), join(this.folder, "node_modules", name));
  }

  /** Runs one test file after the other, as `next` has them, with a probe at each mutant, each for so long. */
  async reach(
    mutants: readonly Mutant[],
    maxSeconds: number,
    next: () => string | undefined,
    note: (reach: Reach) => void,
  ): Promise<void> {
    const log = join(this.folder, ".reached");
    const files = Map.groupBy([...mutants.entries()], ([, { file }]) => file);
    const whole = new Map([...files.keys()].map((file) => [file, this.read(file)]));
    for (const [file, inIt] of files) this.write(file, withProbes(whole.get(file)!, new Map(inIt), log));
    try {
      for (let test = next(); test !== undefined; test = next()) {
        rmSync(log, { force: true });
        const { fail, seconds } = await this.run([test], { ...PATIENT, batchMs: maxSeconds * 1_000 });
        const lines = existsSync(log) ? readFileSync(log, "utf8").split("\n").filter(Boolean) : [];
        note({ test, passes: fail === 0, seconds, reached: [...new Set(lines)].map(Number) });
      }
    } finally {
      for (const [file, text] of whole) this.write(file, text);
    }
  }

  /** With tests that take so many seconds while nothing is broken. */
  async tryNear(mutant: Mutant, tests: readonly string[], seconds: number): Promise<Verdict> {
    return (await this.broken([mutant], () => this.verdict(tests, limitsFor(seconds)))) ?? SURVIVED;
  }

  /** The mutants that do not compile; one of each file is tried at a time. */
  async failingTypes(mutants: readonly Mutant[]): Promise<Set<Mutant>> {
    const failing: Mutant[] = [];
    const files = [...Map.groupBy(mutants, ({ file }) => file).values()];
    for (let at = 0; files.some((inFile) => at < inFile.length); at += 1)
      failing.push(
        ...(await this.failingTogether(files.map((inFile) => inFile[at]).filter((one) => one !== undefined))),
      );
    return new Set(failing);
  }

  /** An error in a mutant's file is its own; one elsewhere is that of a mutant which is found by halves. */
  private async failingTogether(mutants: readonly Mutant[]): Promise<Mutant[]> {
    if (mutants.length === 0) return [];
    const errors = await this.typeErrors(mutants);
    const own = mutants.filter(({ file }) => errors.includes(file));
    const others = mutants.filter((mutant) => !own.includes(mutant));
    if (errors.every((file) => own.some((mutant) => mutant.file === file))) return own;
    if (own.length > 0) return [...own, ...(await this.failingTogether(others))];
    if (others.length === 1) return others;
    const half = Math.ceil(others.length / 2);
    return [
      ...(await this.failingTogether(others.slice(0, half))),
      ...(await this.failingTogether(others.slice(half))),
    ];
  }

  /** With wider tests, each in a process of its own, so that it is known which fails. */
  async tryWide(mutant: Mutant, tests: readonly Pick<Reach, "test" | "seconds">[]): Promise<Verdict> {
    for (const { test, seconds } of tests) {
      const seen = await this.broken([mutant], () => this.verdict([test], limitsFor(seconds)));
      if (seen === null) continue;
      // On a busy machine a test may fail by itself: one that does now, too, has not seen the fault.
      const { fail } = await this.run([test], PATIENT);
      if (fail === 0) return { result: "killed by wider", by: seen.by };
    }
    return SURVIVED;
  }

  /** Ends what runs, and removes the copy. */
  close(): void {
    this.batch?.kill();
    // It would write its cache into the folder that is removed.
    this.checker?.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** While these, each in another file, are in the copy. */
  private async broken<T>(mutants: readonly Mutant[], act: () => Promise<T>): Promise<T> {
    const whole = mutants.map(({ file }) => this.read(file));
    for (const [at, { file, start, end, text }] of mutants.entries())
      this.write(file, whole[at]!.slice(0, start) + text + whole[at]!.slice(end));
    try {
      return await act();
    } finally {
      for (const [at, { file }] of mutants.entries()) this.write(file, whole[at]!);
    }
  }

  private async verdict(tests: readonly string[], limits: Limits): Promise<Verdict | null> {
    if (tests.length === 0) return null;
    const outcome = await this.run(tests, limits);
    if (outcome.fail === 0) return null;
    const hung = outcome.output.some((line) => HUNG.test(line));
    return { result: hung ? "hung" : "killed", by: firstFailure(outcome) };
  }

  private async run(files: readonly string[], limits: Limits): Promise<Outcome> {
    // Executables of earlier mutants, 100 MB each.
    rmSync(join(this.folder, "node_modules/.cache"), { recursive: true, force: true });
    this.batch = new Batch(files, { ...limits, folder: this.folder, toFirstFailure: true });
    return this.batch.run();
  }

  /** The files with errors, once for each error. */
  private async typeErrors(mutants: readonly Mutant[]): Promise<string[]> {
    return this.broken(mutants, async () => {
      const command = ["node_modules/.bin/tsc", "--noEmit", "--pretty", "false", "--incremental"];
      this.checker = Bun.spawn([...command, "--tsBuildInfoFile", ".types"], {
        cwd: this.folder,
        stdout: "pipe",
      });
      const output = await new Response(this.checker.stdout as ReadableStream).text();
      return [...output.matchAll(/^(\S+?)\(\d+,\d+\): error/gm)].map(([, file]) => file!);
    });
  }

  private read(file: string): string {
    return readFileSync(join(this.folder, file), "utf8");
  }

  /** Unless the copy was removed meanwhile. */
  private write(file: string, text: string): void {
    if (existsSync(join(this.folder, file))) writeFileSync(join(this.folder, file), text);
  }
}

/** What Git knows and is still there, and what is new: the tree as it is now. */
function sourceFiles(root: string): string[] {
  const command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const listed = Bun.spawnSync(command, { cwd: root }).stdout.toString().split("\0");
  return listed.filter((file) => file !== "" && existsSync(join(root, file)));
}

function firstFailure({ output, files }: Outcome): string {
  const found = (what: RegExp) =>
    output.map((line) => what.exec(line)?.[1]).find((text) => text !== undefined);
  const test = found(/^\(fail\) (.*?)(?: \[[\d.]+m?s\])?$/) ?? output[0] ?? "ended badly";
  return `${found(/(test\/[\w./-]+\.test\.ts)/) ?? files[0]}: ${test}`;
}

/** For tests that take so many seconds while nothing is broken. */
const limitsFor = (seconds: number): Limits => ({
  testMs: 10_000 + Math.ceil(seconds) * 1_000,
  batchMs: 20_000 + Math.ceil(seconds) * 4_000,
});

const SURVIVED: Verdict = { result: "survived", by: "" };
const HUNG = /timed out after \d+ ?ms|^The process was ended by SIGKILL/;
const PATIENT: Limits = { testMs: 120_000, batchMs: 20 * 60_000 };
