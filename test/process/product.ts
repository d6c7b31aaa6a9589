import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { bundle, inPackage } from "../../scripts/bundle.ts";

/**
 * The product bundled as its package is, because to read one bundle takes half the CPU of reading 600 sources, and
 * tests start hundreds of processes. Returns the script that `gateway` runs. The first process of a run that needs it
 * makes it, and it stays until a source changes.
 */
export const product = (): Promise<string> => (made ??= make());

let made: Promise<string> | undefined;

async function make(): Promise<string> {
  const folder = join(KEPT_IN, stateOfSources());
  if (!existsSync(folder)) {
    forgetOld();
    const own = `${folder}.${process.pid}`;
    await bundle(inPackage(own));
    try {
      renameSync(own, folder);
    } catch (error) {
      // Another process was faster.
      if (!existsSync(folder)) throw error;
      rmSync(own, { recursive: true });
    }
  }
  return join(folder, "main.js");
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

/** Those that no run can be using any more. */
function forgetOld(): void {
  mkdirSync(KEPT_IN, { recursive: true });
  for (const name of readdirSync(KEPT_IN)) {
    const folder = join(KEPT_IN, name);
    const { mtimeMs } = statSync(folder, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
    if (Date.now() - mtimeMs > OLD_MS) rmSync(folder, { recursive: true, force: true });
  }
}

const OLD_MS = 60 * 60_000;
