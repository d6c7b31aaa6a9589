import { chmodSync, copyFileSync, cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import manifest from "../package.json" with { type: "json" };
import { asExecutable, bundle, inPackage } from "./bundle.ts";

/**
 * What is installed where there is no checkout:
 *
 *     bun run build [--outdir <folder>] [--target bun-linux-arm64]
 *
 *     dist/gateway    one executable, with Bun, the threads and the dashboard inside
 *     dist/npm        a package for npm: the same, bundled, next to Bun from npm, and nothing else
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
/** What the gateway's own messages refer to. */
const GUIDES = ["CHANGELOG.md", "docs", "gateway.example.yaml"];

for (const old of ["npm", "gateway"]) rmSync(join(DIST, old), { recursive: true, force: true });
await buildPackage();
await buildExecutable();

async function buildPackage(): Promise<void> {
  const folder = join(DIST, "npm");
  await bundle(inPackage(join(folder, "lib")));
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
  await bundle(asExecutable({ target: options.target, outfile }));
  console.log(`${outfile} (${options.target})`);
}
