import { chmodSync, copyFileSync, cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { BunPlugin } from "bun";
import manifest from "../package.json" with { type: "json" };
import { build as buildApps, pack } from "../src/dashboard/bundle.ts";

/**
 * What is installed where there is no checkout:
 *
 *     bun run build [--outdir <folder>] [--target bun-linux-arm64]
 *
 *     dist/gateway    one executable, with Bun, the threads and the dashboard inside
 *     dist/npm        a package for npm: the same, bundled, beside Bun from npm, and nothing else
 */
const ROOT = join(import.meta.dir, "..");
const { values: options } = parseArgs({
  options: {
    outdir: { type: "string", default: join(ROOT, "dist") },
    /** Of the executable, as Bun names them: `bun-linux-arm64`, `bun-linux-x64-musl` … */
    target: { type: "string", default: `bun-${process.platform}-${process.arch}` },
  },
});
const DIST = resolve(options.outdir);
const ENTRIES = [
  "src/cli/main.ts",
  "src/counting/counting-thread.ts",
  "src/store/sqlite/upkeep-thread.ts",
  "src/store/usage-thread.ts",
];
/** What the gateway's own messages refer to. */
const GUIDES = ["CHANGELOG.md", "docs", "gateway.example.yaml"];
/** Where a thread is begun. */
const THREAD = /"\.\/(?:[\w-]+\/)*([\w-]+)-thread\.ts", import\.meta\.url/g;

for (const old of ["npm", "gateway"]) rmSync(join(DIST, old), { recursive: true, force: true });
const plugins = [threadsAreScripts(), await appsAreBuilt()];
await buildPackage();
await buildExecutable();

async function buildPackage(): Promise<void> {
  const folder = join(DIST, "npm");
  await bundle({ outdir: join(folder, "lib"), splitting: true });
  const { name, version, description, license, engines } = manifest;
  const row = {
    name,
    version,
    description,
    license,
    type: "module",
    bin: { gateway: "gateway.cjs", [name]: "gateway.cjs" },
    files: ["lib", "gateway.cjs", ...GUIDES],
    engines: { node: ">=18", bun: engines.bun },
    dependencies: { bun: manifest.dependencies.bun },
  };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(row, null, 2)}\n`);
  for (const file of ["README.md", "LICENSE", ...GUIDES])
    cpSync(join(ROOT, file), join(folder, file), { recursive: true });
  copyFileSync(join(ROOT, "scripts/launcher.cjs"), join(folder, "gateway.cjs"));
  chmodSync(join(folder, "gateway.cjs"), 0o755);
  console.log(folder);
}

async function buildExecutable(): Promise<void> {
  const outfile = join(DIST, "gateway");
  mkdirSync(DIST, { recursive: true });
  // Compiled ahead: 20 MB more, and a start takes a third of the time, because nothing of it has to be parsed.
  await bundle({ compile: { target: options.target, outfile }, bytecode: true, format: "esm" });
  console.log(`${outfile} (${options.target})`);
}

async function bundle(how: object): Promise<void> {
  const { success, logs } = await Bun.build({
    entrypoints: ENTRIES.map((entry) => join(ROOT, entry)),
    target: "bun",
    naming: "[name].[ext]",
    // Names stay, because traces of faults show them.
    minify: { syntax: true, whitespace: true },
    plugins,
    ...how,
  });
  if (!success) throw new Error(logs.join("\n"));
}

/** A thread's source is named where it is begun; once bundled, it is a script beside all others. */
function threadsAreScripts(): BunPlugin {
  return {
    name: "threads are scripts",
    setup(build) {
      build.onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => {
        const text = await Bun.file(path).text();
        const contents = text.replaceAll(THREAD, '"./$1-thread.js", import.meta.url');
        return contents === text ? undefined : { contents, loader: "ts" };
      });
    },
  };
}

async function appsAreBuilt(): Promise<BunPlugin> {
  const packed = pack(await buildApps());
  return {
    name: "applications are built",
    setup(build) {
      build.onLoad({ filter: /\/src\/dashboard\/prebuilt\.ts$/ }, () => ({
        contents: `export const PREBUILT = ${JSON.stringify(packed)};`,
        loader: "js",
      }));
    },
  };
}
