import { readFileSync } from "node:fs";
import { join, normalize } from "node:path";
import { Glob } from "bun";
import { isLong } from "../runner/batches.ts";
import type { Reach } from "./trial.ts";

/** How far a test is from a file that it imports, in however many steps. */
export class ImportGraph {
  private readonly imports = new Map<string, readonly string[]>();

  constructor(private readonly root: string) {}

  testsIn(folders: readonly string[]): string[] {
    return folders
      .flatMap((folder) => [...new Glob(`${folder}/**/*.test.ts`).scanSync(this.root)].sort())
      .filter((test) => !isLong(test));
  }

  nearestFirst(file: string, tests: readonly string[]): string[] {
    return tests
      .map((test) => [test, this.distance(test, file)] as const)
      .sort(([, a], [, b]) => a - b)
      .map(([test]) => test);
  }

  /** Steps from a test to the file. What starts the product as a process imports none of it, and comes last. */
  private distance(from: string, to: string): number {
    const seen = new Set([from]);
    let reached = [from];
    for (let steps = 0; reached.length > 0; steps += 1) {
      if (reached.includes(to)) return steps;
      reached = reached
        .flatMap((file) => this.importsOf(file))
        .filter((file) => !seen.has(file) && seen.add(file));
    }
    return FARTHEST;
  }

  private importsOf(file: string): readonly string[] {
    const known = this.imports.get(file);
    if (known !== undefined) return known;
    const found = this.read(file);
    this.imports.set(file, found);
    return found;
  }

  /** Without types; with threads, which are named by their URL. */
  private read(file: string): string[] {
    if (!/\.tsx?$/.test(file)) return [];
    const text = readFileSync(join(this.root, file), "utf8");
    const { imports } = new Bun.Transpiler({ loader: file.endsWith("x") ? "tsx" : "ts" }).scan(text);
    const threads = [...text.matchAll(/new URL\("(\.[^"]+\.ts)"/g)].map(([, path]) => path!);
    return [...imports.map(({ path }) => path), ...threads]
      .filter((path) => path.startsWith("."))
      .map((path) => normalize(join(file, "..", path)));
  }
}

const FARTHEST = 1_000;

/** The quickest that take so many seconds together, and one at least. */
export function inBudget(reaches: readonly Reach[], budgetSeconds: number): string[] {
  let seconds = 0;
  return [...reaches]
    .sort((a, b) => a.seconds - b.seconds)
    .filter((reach, at) => {
      seconds += reach.seconds;
      return at === 0 || seconds <= budgetSeconds;
    })
    .map(({ test }) => test);
}
