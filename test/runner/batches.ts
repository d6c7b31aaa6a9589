import { dirname } from "node:path";
import { Glob } from "bun";

export const isLong = (file: string): boolean => file.endsWith(".long.test.ts");

/**
 * Whether a batch that failed may be run once more: not where storms, long runs and simulated or random money are in
 * it, whose failure is a fault of the gateway even if it does not come back.
 */
export const mayRunAgain = (files: readonly string[]): boolean =>
  !files.some((file) => NEVER_AGAIN.test(file));

const NEVER_AGAIN = /^test\/(?!bench\/).*\.long\.test\.ts$|^test\/(sim|network)\/|\/random-/;

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
 * and make what they share once, but not so many that memory fills or that the last process runs alone. Files
 * that take minutes are each by themselves.
 */
export function batchesOf(files: readonly string[], each: boolean): string[][] {
  const folders = new Map<string, string[]>();
  const short = files.filter((file) => !isLong(file));
  for (const file of short) folders.set(dirname(file), [...(folders.get(dirname(file)) ?? []), file]);
  const shared = [...folders].flatMap(([folder, all]) => inParts(all, each ? 1 : sizeOf(folder).files));
  return [...files.filter(isLong).map((file) => [file]), ...shared].sort(
    (a, b) => secondsOf(b) - secondsOf(a),
  );
}

/** Files of a process at most, and what each takes about, in seconds of two cores that are busy with tests. */
interface Size {
  readonly files: number;
  readonly seconds: number;
}

/** Fewer, where they start processes of their own or take long. */
const SIZES: Readonly<Record<string, Size>> = {
  "test/access": { files: 1, seconds: 31 },
  "test/bench": { files: 1, seconds: 5 },
  "test/browser": { files: 4, seconds: 15 },
  "test/cli": { files: 1, seconds: 15 },
  "test/cli/moving": { files: 4, seconds: 8 },
  "test/fuzz": { files: 1, seconds: 10 },
  "test/gateway": { files: 8, seconds: 4.5 },
  "test/gateway/pairings": { files: 5, seconds: 5.5 },
  "test/generation": { files: 8, seconds: 2 },
  "test/hosts": { files: 6, seconds: 1.5 },
  "test/http": { files: 12, seconds: 3 },
  "test/network": { files: 1, seconds: 4 },
  "test/packaging": { files: 1, seconds: 16 },
  "test/payments": { files: 3, seconds: 10 },
  "test/postgres": { files: 4, seconds: 10 },
  "test/process": { files: 1, seconds: 13 },
  "test/process/upgrade": { files: 1, seconds: 90 },
  "test/sim": { files: 1, seconds: 10 },
  "test/store": { files: 12, seconds: 2 },
  "test/surfaces/pairing": { files: 6, seconds: 1 },
  "test/tokens": { files: 3, seconds: 2 },
  "test/server/workers": { files: 2, seconds: 20 },
};
const ELSEWHERE: Size = { files: 12, seconds: 1 };
const LONG_SECONDS = 60;

/** Mostly waits, so they begin early; such a file started last would run alone. */
const SLOW_FILES: Readonly<Record<string, number>> = {
  "test/payments/drills.test.ts": 100,
  "test/process/export.test.ts": 100,
};

const sizeOf = (folder: string): Size => SIZES[folder] ?? ELSEWHERE;

const secondsOf = (files: readonly string[]): number =>
  files.reduce(
    (sum, file) => sum + (SLOW_FILES[file] ?? (isLong(file) ? LONG_SECONDS : sizeOf(dirname(file)).seconds)),
    0,
  );

/** As few parts as possible, with as many files in each. */
function inParts(files: readonly string[], most: number): string[][] {
  const parts = Math.ceil(files.length / most);
  return Array.from({ length: parts }, (_, part) => files.filter((_, at) => at % parts === part));
}
