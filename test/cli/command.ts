import { join } from "node:path";
import { cleanEnvironment } from "../environment.ts";
import { product } from "../process/product.ts";

/** One run of the command line as its operator has it: a process, its two outputs and its exit code. */
export async function gateway(
  args: readonly string[],
  env: Record<string, string> = {},
  cwd = ROOT,
): Promise<Run> {
  const child = Bun.spawn([await product(), ...args], {
    cwd,
    env: { ...cleanEnvironment(), ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, err, code };
}

export interface Run {
  readonly out: string;
  readonly err: string;
  readonly code: number;
}

const ROOT = join(import.meta.dir, "../..");
