import { chmodSync, copyFileSync, cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { asExecutable, bundle, inPackage } from "./bundle.ts";

export const ROOT = join(import.meta.dir, "..");
/** What the gateway's own messages refer to. */
const GUIDES = ["CHANGELOG.md", "docs", "gateway.example.yaml"];

/** A package for npm in `folder`: the gateway bundled, next to Bun from npm, and nothing else. */
export async function buildPackage(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  await bundle(inPackage(join(folder, "lib")));
  const { name, version, description, keywords, license, engines } = manifest;
  const row = {
    name,
    version,
    description,
    keywords,
    license,
    ...origin(process.env.GITHUB_REPOSITORY),
    type: "module",
    bin: { gateway: "gateway.cjs", [name]: "gateway.cjs" },
    files: ["lib", "gateway.cjs", ...GUIDES],
    engines: { node: ">=18", bun: engines.bun },
    dependencies: { bun: manifest.dependencies.bun },
    // npm then shows from which commit and workflow the package was built.
    publishConfig: { access: "public", provenance: true },
  };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(row, null, 2)}\n`);
  for (const file of ["README.md", "LICENSE", ...GUIDES])
    cpSync(join(ROOT, file), join(folder, file), { recursive: true });
  copyFileSync(join(ROOT, "scripts/launcher.cjs"), join(folder, "gateway.cjs"));
  chmodSync(join(folder, "gateway.cjs"), 0o755);
}

/** Where the sources are: a workflow knows it (`owner/name`), and npm compares it with the workflow's identity. */
function origin(repository: string | undefined): object {
  if (!repository) return {};
  const url = `https://github.com/${repository}`;
  return {
    repository: { type: "git", url: `git+${url}.git` },
    homepage: `${url}#readme`,
    bugs: `${url}/issues`,
  };
}

/** One file with Bun, the threads and the dashboard inside; `target` as Bun names them: `bun-linux-arm64`, … */
export async function buildExecutable(target: string, outfile: string): Promise<void> {
  mkdirSync(dirname(outfile), { recursive: true });
  rmSync(outfile, { force: true });
  await bundle(asExecutable({ target, outfile }));
}
