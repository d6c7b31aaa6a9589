import { readFileSync } from "node:fs";
import { join, normalize } from "node:path";
import { Glob } from "bun";
import { isLong } from "../runner/batches.ts";

/** Which tests could notice a change of a file: those that import it, in however many steps, the nearest first. */
export class ImportGraph {
  private readonly imports = new Map<string, readonly string[]>();

  constructor(private readonly root: string) {}

  testsIn(folders: readonly string[]): string[] {
    return folders
      .flatMap((folder) => [...new Glob(`${folder}/**/*.test.ts`).scanSync(this.root)].sort())
      .filter((test) => !isLong(test));
  }

  testsOf(file: string, folders: readonly string[]): string[] {
    return this.testsIn(folders)
      .map((test) => [test, this.distance(test, file)] as const)
      .filter(([, steps]) => steps < Number.POSITIVE_INFINITY)
      .sort(([, a], [, b]) => a - b)
      .map(([test]) => test);
  }

  /** Steps from a test to the file. What starts the product as a process reaches all of it, at the very end. */
  private distance(from: string, to: string): number {
    const seen = new Set([from]);
    let reached = [from];
    for (let steps = 0; reached.length > 0; steps += 1) {
      if (reached.includes(to)) return steps;
      reached = reached
        .flatMap((file) => this.importsOf(file))
        .filter((file) => !seen.has(file) && seen.add(file));
    }
    return seen.has(PRODUCT) ? FARTHEST : Number.POSITIVE_INFINITY;
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

const PRODUCT = "test/process/product.ts";
const FARTHEST = 1_000;
