import { dirname } from "node:path";
import { Glob } from "bun";

/** The test files whose path contains one of these; all, if none is named. */
export function testFiles(long: boolean, paths: readonly string[]): string[] {
  const all = [...new Glob("test/**/*.test.ts").scanSync(".")].sort();
  return all.filter(
    (file) =>
      file.endsWith(".long.test.ts") === long &&
      (paths.length === 0 || paths.some((path) => file.includes(path))),
  );
}

/**
 * Which files share a process, the longest first. Most files are done in less time than a process takes to
 * start and to read what they test, so those of a folder run together; those that start processes of their
 * own, or take long, run alone.
 */
export function batchesOf(files: readonly string[], each: boolean): string[][] {
  const batches = new Map<string, string[]>();
  for (const file of files) {
    const place = ALONE.find((one) => file.startsWith(one));
    const name = each || place !== undefined ? file : dirname(file);
    batches.set(name, [...(batches.get(name) ?? []), file]);
  }
  return [...batches.values()].sort(([a], [b]) => rank(a!) - rank(b!));
}

const rank = (file: string): number => {
  const at = ALONE.findIndex((one) => file.startsWith(one));
  return at === -1 ? ALONE.length : at;
};

const ALONE = [
  "test/sim/",
  "test/postgres/",
  "test/network/",
  "test/process/",
  "test/browser/",
  "test/bench/",
  "test/packaging/",
  "test/cli/",
  "test/gateway/",
];
