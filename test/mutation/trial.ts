import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { Batch, type Limits, type Outcome } from "../runner/batch.ts";
import type { Mutant } from "./mutants.ts";
import type { Room } from "./rooms.ts";
import { ImportGraph } from "./tests-of.ts";

export type Result = "killed" | "killed by types" | "hung" | "survived";

/** What came of a mutant: `by` is the first test that failed. */
export interface Verdict {
  readonly result: Result;
  readonly by: string;
}

/** A copy of the working tree, in which one mutant at a time is tried. */
export class Bench {
  readonly folder = mkdtempSync(join(tmpdir(), "mutation-"));
  private readonly graph: ImportGraph;
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
    this.graph = new ImportGraph(this.folder);
  }

  /** Seconds that a room's tests take while nothing is broken; throws if they fail. */
  async unbroken({ near }: Room): Promise<number> {
    const outcome = await this.run(this.graph.testsIn(near), PATIENT);
    if (outcome.fail > 0)
      throw new Error(`Nothing is broken yet, and tests fail:\n${outcome.output.slice(-60).join("\n")}`);
    return outcome.seconds;
  }

  async try(mutant: Mutant, { near, wide }: Room, nearSeconds: number, widely: boolean): Promise<Verdict> {
    const path = join(this.folder, mutant.file);
    const whole = await readFile(path, "utf8");
    writeFileSync(path, whole.slice(0, mutant.start) + mutant.text + whole.slice(mutant.end));
    try {
      const limits = {
        testMs: 10_000 + Math.ceil(nearSeconds) * 1_000,
        batchMs: 20_000 + Math.ceil(nearSeconds) * 4_000,
      };
      const seenNearby = await this.verdict(this.graph.testsOf(mutant.file, near), limits);
      if (seenNearby !== null) return seenNearby;
      if (await this.failsTypes()) return { result: "killed by types", by: "tsc" };
      if (!widely) return SURVIVED;
      const seen = await this.verdict(this.graph.testsOf(mutant.file, wide), PATIENT);
      if (seen === null) return SURVIVED;
      // These were never run without the fault: a test that fails then, too, does not see it.
      writeFileSync(path, whole);
      const { fail } = await this.run([seen.by.split(":")[0]!], PATIENT);
      return fail === 0 ? seen : { result: "survived", by: `fails without it, too: ${seen.by}` };
    } finally {
      if (existsSync(path)) writeFileSync(path, whole);
    }
  }

  /** Ends what runs, and removes the copy. */
  close(): void {
    this.batch?.kill();
    // It would write its cache into the folder that is removed.
    this.checker?.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
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

  private async failsTypes(): Promise<boolean> {
    const command = ["node_modules/.bin/tsc", "--noEmit", "--incremental", "--tsBuildInfoFile", ".types"];
    this.checker = Bun.spawn(command, { cwd: this.folder, stdout: "ignore" });
    return (await this.checker.exited) !== 0;
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

const SURVIVED: Verdict = { result: "survived", by: "" };
const HUNG = /timed out after \d+ ?ms|^The process was ended by SIGKILL/;
const PATIENT: Limits = { testMs: 120_000, batchMs: 20 * 60_000 };
