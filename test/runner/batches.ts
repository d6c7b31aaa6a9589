import { dirname } from "node:path";
import { Glob } from "bun";

const isLong = (file: string): boolean => file.endsWith(".long.test.ts");

/**
 * Whether a batch that failed may be run once more: not where storms, long runs and simulated or random money are in
 * it, whose failure is a fault of the gateway even if it does not come back.
 */
export const mayRunAgain = (files: readonly string[]): boolean =>
  !files.some((file) => NEVER_AGAIN.test(file));

const NEVER_AGAIN = /\.long\.test\.ts$|^test\/(sim|network)\/|\/random-/;

/** The test files whose path contains one of these; all, if none is named. */
export function testFiles(which: "short" | "long" | "all", paths: readonly string[]): string[] {
  const all = [...new Glob("test/**/*.test.ts").scanSync(".")].sort();
  return all.filter(
    (file) =>
      (which === "all" || isLong(file) === (which === "long")) &&
      (paths.length === 0 || paths.some((path) => file.includes(path))),
  );
}

/**
 * Which files share a process, the longest first: those of a folder, so that they start it, read what they test
 * and make what they share once, but not so many that memory fills or that the last process runs alone. Those
 * that take minutes come before all others, each by itself.
 */
export function batchesOf(files: readonly string[], each: boolean): string[][] {
  const folders = new Map<string, string[]>();
  const short = files.filter((file) => !isLong(file));
  for (const file of short) folders.set(dirname(file), [...(folders.get(dirname(file)) ?? []), file]);
  const shared = [...folders]
    .sort(([a], [b]) => rank(a) - rank(b))
    .flatMap(([folder, all]) => inParts(all, each ? 1 : (MOST[folder] ?? MOST_ELSEWHERE)));
  return [...files.filter(isLong).map((file) => [file]), ...shared];
}

/** Files of a process, where they start processes of their own or take long; the slowest folders first. */
const MOST: Readonly<Record<string, number>> = {
  "test/browser": 5,
  "test/payments": 3,
  "test/sim": 1,
  "test/bench": 1,
  "test/network": 1,
  "test/process": 1,
  "test/postgres": 5,
  "test/packaging": 1,
  "test/cli": 1,
  "test/workers": 3,
  "test/gateway": 8,
};
const MOST_ELSEWHERE = 12;

function rank(folder: string): number {
  const at = Object.keys(MOST).indexOf(folder);
  return at === -1 ? Object.keys(MOST).length : at;
}

/** As few parts as possible, with as many files in each. */
function inParts(files: readonly string[], most: number): string[][] {
  const parts = Math.ceil(files.length / most);
  return Array.from({ length: parts }, (_, part) => files.filter((_, at) => at % parts === part));
}
