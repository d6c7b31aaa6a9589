/** Real processes to measure: started, waited for, their CPU time read from the kernel, stopped. */
import { readFileSync } from "node:fs";

export interface Measured {
  readonly port: number;
  readonly pid: number;
  /** User and system time so far, µs. */
  cpuUs(): number;
  /** Resident memory, bytes. */
  residentBytes(): number;
  stop(): Promise<void>;
}

/** Starts a program that prints its port, alone or in an address, on its first matching line. */
export async function start(command: string[], env: Record<string, string> = {}): Promise<Measured> {
  const child = Bun.spawn(command, { env: { ...process.env, ...env }, stdout: "pipe", stderr: "inherit" });
  const port = await portOf(child.stdout);
  return {
    port,
    pid: child.pid,
    cpuUs: () => cpuUs(child.pid),
    residentBytes: () =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))![1]) * 1_024,
    async stop() {
      child.kill();
      await child.exited;
    },
  };
}

/** What the kernel counts of any process. */
export const processOf = (pid: number): Pick<Measured, "cpuUs" | "residentBytes"> => ({
  cpuUs: () => cpuUs(pid),
  residentBytes: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) * 1_024,
});

async function portOf(stdout: ReadableStream<Uint8Array>): Promise<number> {
  let text = "";
  for await (const chunk of stdout) {
    text += new TextDecoder().decode(chunk);
    const match = /listening on http:\/\/[^:\s]+:(\d+)/.exec(text) ?? /^(\d+)\n/.exec(text);
    if (match !== null) return Number(match[1]);
  }
  throw new Error(`the process ended without a port: ${text}`);
}

/** Linux counts in ticks of 10 ms: measure over seconds, not over single requests. */
const TICK_US = 10_000;

function cpuUs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_US;
}
