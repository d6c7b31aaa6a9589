import { readdirSync, readFileSync } from "node:fs";
import { RUN_MARK } from "../environment.ts";

/**
 * Ends what carries this mark: gateways, databases and browsers of a test that failed or was killed. They may
 * have left its session and its family, so they are found by their environment. Returns what they were.
 * Without /proc nothing is found.
 */
export function endLeftovers(mark: string): string[] {
  const ended: string[] = [];
  for (let wait = 0; wait < MAX_WAITS && processes().some(isStarting); wait++) Bun.sleepSync(WAIT_MS);
  for (const pid of processes()) {
    if (pid === process.pid || !environmentOf(pid).some((entry) => entry.startsWith(`${RUN_MARK}=${mark}`)))
      continue;
    ended.push(read(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim());
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // Gone already.
    }
  }
  return ended;
}

/** How much memory all processes with these marks have that is theirs alone. */
export function megabytesOf(marks: readonly string[]): number {
  const entries = new Set(marks.map((mark) => `${RUN_MARK}=${mark}`));
  let kilobytes = 0;
  for (const pid of processes())
    if (environmentOf(pid).some((entry) => entries.has(entry)))
      kilobytes += Number(/^RssAnon:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0);
  return kilobytes / 1_000;
}

const MAX_WAITS = 1_000;
const WAIT_MS = 5;

/** In the middle of `exec`: the kernel lets the parent go on before the child's environment can be read. */
const isStarting = (pid: number): boolean =>
  read(`/proc/${pid}/environ`) === "" &&
  read(`/proc/${pid}/cmdline`) === "" &&
  /^VmSize:/m.test(read(`/proc/${pid}/status`));

const environmentOf = (pid: number): string[] => read(`/proc/${pid}/environ`).split("\0");

function processes(): number[] {
  try {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
