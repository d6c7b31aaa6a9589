/**
 * Real processes to measure: started, waited for, their CPU time and memory read from the kernel, stopped.
 */
import { readdirSync, readFileSync } from "node:fs";
import { cpus } from "node:os";

export interface Measured {
  readonly port: number;
  readonly pid: number;
  /** User and system time so far of it and of all that it started, µs. */
  cpuUs(): number;
  /** Resident memory of them all, bytes. */
  residentBytes(): number;
  stop(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
}

/** Starts a program that prints its port, alone or in an address, on its first matching line. */
export async function start(command: string[], env: Record<string, string> = {}): Promise<Measured> {
  const child = Bun.spawn(command, { env: { ...process.env, ...env }, stdout: "pipe", stderr: "inherit" });
  return measured(child, await portOf(child.stdout));
}

export interface Quiet {
  readonly command: string[];
  /** That it has to listen on. */
  readonly port: number;
  readonly env?: Record<string, string>;
  readonly folder?: string;
  readonly timeoutMs?: number;
}

/** Starts a program that says nothing of use, and waits for its port to take connections. */
export async function startQuiet({ command, port, env, folder, timeoutMs }: Quiet): Promise<Measured> {
  const child = Bun.spawn(command, {
    env: { ...process.env, ...env },
    ...(folder === undefined ? {} : { cwd: folder }),
    stdout: "ignore",
    stderr: "ignore",
  });
  const one = measured(child, port);
  try {
    await reachable(port, () => child.exitCode !== null, timeoutMs);
    return one;
  } catch (error) {
    await one.stop("SIGKILL");
    throw new Error(`${command[0]}: ${(error as Error).message}`);
  }
}

/** User and system time so far of a process and of all that it started, µs. */
export const cpuUsOf = (pid: number): number => family(pid).reduce((sum, one) => sum + cpuUs(one), 0);

/** Resident memory of them all, bytes. */
export const residentBytesOf = (pid: number): number =>
  family(pid).reduce((sum, one) => sum + residentBytes(one), 0);

/**
 * Pins this process, and what it starts from then on, to these cores, so that the scheduler decides less. False where
 * the machine has but one, or no `taskset`.
 */
export function pinTo(cores: string): boolean {
  if (cpus().length < 2 || Bun.which("taskset") === null) return false;
  return Bun.spawnSync(["taskset", "-acp", cores, `${process.pid}`]).exitCode === 0;
}

/** The core of what is measured, and those of load and host. */
export const MEASURED_CORE = "0";
export const otherCores = (): string => `1-${cpus().length - 1}`;

/** Starts what is measured on its core. */
export async function onMeasuredCore<T>(begin: () => Promise<T>): Promise<T> {
  pinTo(MEASURED_CORE);
  try {
    return await begin();
  } finally {
    pinTo(otherCores());
  }
}

function measured(child: Bun.Subprocess, port: number): Measured {
  let stopped: Promise<void> | null = null;
  const stop = async (signal: "SIGTERM" | "SIGKILL") => {
    const all = family(child.pid);
    // Killed, a parent cannot pass it on.
    if (signal === "SIGKILL") for (const pid of all) endOne(pid);
    else child.kill(signal);
    await Promise.race([child.exited, Bun.sleep(STOP_MS)]);
    for (const pid of all) endOne(pid);
    await child.exited;
  };
  return {
    port,
    pid: child.pid,
    cpuUs: () => cpuUsOf(child.pid),
    residentBytes: () => residentBytesOf(child.pid),
    // Once: later, its id may be another process's.
    stop: (signal = "SIGTERM") => (stopped ??= stop(signal)),
  };
}

const STOP_MS = 10_000;

function endOne(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Gone already.
  }
}

async function portOf(stdout: ReadableStream<Uint8Array>): Promise<number> {
  let text = "";
  for await (const chunk of stdout) {
    text += new TextDecoder().decode(chunk);
    const match = /listening on http:\/\/[^:\s]+:(\d+)/.exec(text) ?? /^(\d+)\n/.exec(text);
    if (match !== null) return Number(match[1]);
  }
  throw new Error(`the process ended without a port: ${text}`);
}

export async function reachable(port: number, ended: () => boolean, timeoutMs = 10_000): Promise<void> {
  const untilMs = performance.now() + timeoutMs;
  while (performance.now() < untilMs && !ended()) {
    try {
      (await Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } })).end();
      return;
    } catch {
      await Bun.sleep(5);
    }
  }
  throw new Error(ended() ? "it ended without listening" : `nothing listens after ${timeoutMs} ms`);
}

/**
 * A free port for a process that cannot choose one itself. It is below those that the kernel gives to outgoing
 * connections, one of which might otherwise take it first.
 */
export function freePort(): number {
  for (let tries = 0; tries < MAX_PORT_TRIES; tries++) {
    const port = MIN_PORT + Math.floor(Math.random() * (FIRST_OUTGOING_PORT - MIN_PORT));
    try {
      Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
      return port;
    } catch {
      // Taken: another one.
    }
  }
  throw new Error(`no free port in ${MAX_PORT_TRIES} tries`);
}

const MIN_PORT = 16_384;
/** Linux's default (net.ipv4.ip_local_port_range). */
const FIRST_OUTGOING_PORT = 32_768;
const MAX_PORT_TRIES = 100;

/** A process and everything it started. */
function family(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc")) {
    const parent = /^\d+$/.test(name) ? Number(fieldsOf(Number(name))?.[1]) : Number.NaN;
    if (!Number.isNaN(parent)) children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const all = [root];
  for (const pid of all) all.push(...(children.get(pid) ?? []));
  return all;
}

/** Linux counts in ticks of 10 ms: measure over seconds, not over single requests. */
const TICK_US = 10_000;

/** Its own, and that of children which have ended. */
function cpuUs(pid: number): number {
  const fields = fieldsOf(pid);
  return fields === null ? 0 : [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0) * TICK_US;
}

function residentBytes(pid: number): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1_024;
  } catch {
    return 0;
  }
}

/** What follows the name in the process's line; null when it has ended. */
function fieldsOf(pid: number): string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}
