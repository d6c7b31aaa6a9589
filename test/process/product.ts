import { Database } from "bun:sqlite";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { asExecutable, bundle } from "../../scripts/bundle.ts";

/**
 * The product as one executable, because that starts with a quarter of the CPU of 600 sources and half that of a
 * package, and tests start hundreds of processes. Returns its path. The first process of a run that needs it makes
 * it, and it stays until a source changes.
 */
export const product = (): Promise<string> => (made ??= make());

let made: Promise<string> | undefined;

async function make(): Promise<string> {
  mkdirSync(KEPT_IN, { recursive: true });
  const path = join(KEPT_IN, stateOfSources());
  if (!existsSync(path)) await alone(() => makeOnce(path));
  return path;
}

async function makeOnce(path: string): Promise<void> {
  // While this process waited, another made it.
  if (existsSync(path)) return;
  forgetOld();
  const outfile = `${path}.making`;
  // What is in the checkout's `.env` is its owner's.
  await bundle(asExecutable({ outfile, autoloadDotenv: false }));
  renameSync(outfile, path);
}

/** One process at a time; a killed one lets the next in. */
async function alone(run: () => Promise<void>): Promise<void> {
  const lock = new Database(join(KEPT_IN, "lock.sqlite"));
  lock.run("PRAGMA busy_timeout = 600000");
  lock.run("BEGIN EXCLUSIVE");
  await run().finally(() => lock.close());
}

const ROOT = join(import.meta.dir, "../..");
const KEPT_IN = join(ROOT, "node_modules/.cache/gateway-tests");

function stateOfSources(): string {
  const sources = [...new Glob("src/**/*").scanSync(ROOT), "scripts/bundle.ts", "package-lock.json"].sort();
  const hash = new Bun.CryptoHasher("sha256", Bun.version);
  for (const source of sources) {
    const { mtimeMs, size } = statSync(join(ROOT, source));
    hash.update(`${source} ${mtimeMs} ${size}\n`);
  }
  return hash.digest("hex").slice(0, 16);
}

/** Removes builds that no run can be using any more. */
function forgetOld(): void {
  for (const name of readdirSync(KEPT_IN)) {
    if (name.startsWith("lock.")) continue;
    const path = join(KEPT_IN, name);
    if (Date.now() - statSync(path).mtimeMs > OLD_MS) rmSync(path, { recursive: true });
  }
}

const OLD_MS = 60 * 60_000;
