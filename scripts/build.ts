import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { buildExecutable, buildPackage, ROOT } from "./artifacts.ts";

/**
 * What is installed where there is no checkout:
 *
 *     bun run build [--outdir <folder>] [--target bun-linux-arm64]
 *
 *     dist/gateway    one executable
 *     dist/npm        a package for npm
 */
const { values: options } = parseArgs({
  options: {
    outdir: { type: "string", default: join(ROOT, "dist") },
    target: { type: "string", default: `bun-${process.platform}-${process.arch}` },
  },
});
const folder = resolve(options.outdir);
await buildPackage(join(folder, "npm"));
console.log(join(folder, "npm"));
await buildExecutable(options.target, join(folder, "gateway"));
console.log(`${join(folder, "gateway")} (${options.target})`);
