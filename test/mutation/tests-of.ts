import { Glob } from "bun";
import { isLong } from "../runner/batches.ts";
import type { Reach } from "./trial.ts";

/** In these folders and files. */
export function testsIn(paths: readonly string[]): string[] {
  return paths
    .flatMap((path) =>
      path.endsWith(".ts") ? [path] : [...new Glob(`${path}/**/*.test.ts`).scanSync(".")].sort(),
    )
    .filter((test) => !isLong(test));
}

/** Tests that come to the mutant: those that take `budget` seconds together. */
export function quickestFirst(reaches: readonly Reach[], mutant: number, budget: number) {
  const tests: Reach[] = [];
  let seconds = 0;
  for (const reach of reaches.toSorted((a, b) => a.seconds - b.seconds)) {
    if (!reach.reached.includes(mutant)) continue;
    if (seconds + reach.seconds > budget) break;
    tests.push(reach);
    seconds += reach.seconds;
  }
  return { tests, seconds };
}
