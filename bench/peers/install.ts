import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";

/** Where peers are installed: `BENCH_CACHE`, or a folder of its own in the user's cache. */
export function cacheFolder(): string {
  const base = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  return process.env.BENCH_CACHE || join(base, "text-generation-gateway-bench");
}

/** A folder that `fill` fills once; one that was left half full is filled again. */
export async function filledOnce(folder: string, fill: (draft: string) => Promise<void>): Promise<string> {
  if (existsSync(folder)) return folder;
  const draft = `${folder}.draft`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  await fill(draft);
  renameSync(draft, folder);
  return folder;
}

/**
 * A program of the system, or Debian's with the libraries that only it needs, unpacked and not installed: nothing of
 * the system is touched.
 */
export async function debianProgram(
  cache: string,
  name: string,
  packages: readonly string[],
): Promise<{ program: string; env: Record<string, string> }> {
  const installed = Bun.which(name);
  if (installed !== null) return { program: installed, env: {} };
  const folder = await filledOnce(join(cache, name), async (draft) => {
    await run(["apt-get", "download", ...packages], draft);
    for (const file of new Bun.Glob("*.deb").scanSync(draft)) await run(["dpkg-deb", "-x", file, "."], draft);
  });
  const libraries = [...new Bun.Glob("usr/lib/*-linux-*").scanSync({ cwd: folder, onlyFiles: false })];
  return {
    program: join(folder, "usr/sbin", name),
    env: { LD_LIBRARY_PATH: libraries.map((path) => join(folder, path)).join(":") },
  };
}

/**
 * @throws {Error} with the last complaint that it printed, when it fails or takes longer than ten minutes.
 */
export async function run(command: string[], cwd: string, env: Record<string, string> = {}): Promise<string> {
  if (Bun.which(command[0]!) === null) throw new Error(`${command[0]} is not installed`);
  const child = Bun.spawn(command, {
    cwd,
    env: { ...process.env, ...env },
    stdout: "pipe",
    stderr: "pipe",
    timeout: INSTALL_MS,
  });
  const [out, complaint] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) === 0) return `${out}${complaint}`.trim();
  const lines = `${out}\n${complaint}`.trim().split("\n");
  const message = lines.findLast((line) => /error:|ENOTFOUND|not found/i.test(line)) ?? lines.at(-1) ?? "";
  throw new Error(`${basename(command[0]!)}: ${message.trim().slice(0, 200)}`);
}

const INSTALL_MS = 600_000;
