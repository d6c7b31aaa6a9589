import { join } from "node:path";
import { $, type BunPlugin } from "bun";
import { build as buildApps, pack } from "../src/dashboard/bundle.ts";

const ROOT = join(import.meta.dir, "..");
const ENTRIES = [
  "src/cli/main.ts",
  "src/generation/counting/counting-thread.ts",
  "src/store/database/maintenance-thread.ts",
  "src/store/usage/usage-thread.ts",
];
/** Where a thread is started. */
const THREAD = /"\.\/(?:[\w-]+\/)*([\w-]+)-thread\.ts", import\.meta\.url/g;

/** The gateway with its threads and the dashboard, in files that Bun runs without anything else. */
export async function bundle(how: object): Promise<void> {
  const { success, logs } = await Bun.build({
    entrypoints: ENTRIES.map((entry) => join(ROOT, entry)),
    target: "bun",
    naming: "[name].[ext]",
    // Names stay, because traces of faults show them.
    minify: { syntax: true, whitespace: true },
    define: { GATEWAY_BUILD: JSON.stringify(await buildName()) },
    plugins: [threadsAreScripts(), await appsAreBuilt()],
    ...how,
  });
  if (!success) throw new Error(logs.join("\n"));
}

/** The commit of the sources, with a mark where they were changed; `GATEWAY_BUILD` where there is no git, as in an image. */
async function buildName(): Promise<string> {
  const named = process.env.GATEWAY_BUILD;
  if (named) return named;
  const { exitCode, stdout } = await $`git describe --always --abbrev=12 --exclude=${"*"} --dirty=.changed`
    .cwd(ROOT)
    .quiet()
    .nothrow();
  return exitCode === 0 ? stdout.toString().trim() : "unknown";
}

/** The package's; what only some need is in files of its own. */
export const inPackage = (outdir: string): object => ({ outdir, splitting: true });

/** One file with Bun. Compiled ahead: 20 MB more, and a start takes a third of the time, because nothing of it has to be parsed. */
export const asExecutable = (compile: object): object => ({ compile, bytecode: true, format: "esm" });

/** A thread's source is named where it is started; once bundled, it is a script next to all others. */
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
