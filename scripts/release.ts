import { createHash } from "node:crypto";
import { cpSync, createReadStream, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { $ } from "bun";
import manifest from "../package.json" with { type: "json" };
import { buildExecutable, buildPackage, ROOT } from "./artifacts.ts";

/**
 * Makes all files of a release, checks them, and publishes the package:
 *
 *     npm run release -- --dry-run [--outdir dist/release] [--only bun-linux-x64]
 *
 *     text-generation-gateway-<version>.tgz     the package, as npm publishes it
 *     gateway-<version>-<platform>[.exe]        executables
 *     image/                                    what deploy/Dockerfile.release copies into the image
 *     gateway-<version>.cdx.json                a software bill of materials (CycloneDX)
 *     SHA256SUMS                                of all of these
 *
 * With --dry-run npm is asked whether it would publish the package, and nothing leaves the machine.
 */
const TARGETS = {
  "bun-linux-x64": "linux-x64",
  "bun-linux-arm64": "linux-arm64",
  "bun-linux-x64-musl": "linux-x64-musl",
  "bun-linux-arm64-musl": "linux-arm64-musl",
  "bun-darwin-x64": "darwin-x64",
  "bun-darwin-arm64": "darwin-arm64",
} as const satisfies Record<string, string>;
type Target = keyof typeof TARGETS;

const { values: options } = parseArgs({
  options: {
    "dry-run": { type: "boolean", default: false },
    outdir: { type: "string", default: join(ROOT, "dist/release") },
    /** Executables for these targets alone; all by default. */
    only: { type: "string", multiple: true, default: [] },
  },
});
const isDryRun = options["dry-run"];
const folder = resolve(options.outdir);
const { name, version } = manifest;

const unmet = await unmetConditions();
if (unmet.length > 0) {
  for (const condition of unmet) console.error(isDryRun ? `would refuse: ${condition}` : condition);
  if (!isDryRun) process.exit(1);
}
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const tarball = await step("package", makePackage);
for (const target of targets()) await step(TARGETS[target], () => makeExecutable(target));
await step("image context", makeImageContext);
await step("bill of materials", makeBillOfMaterials);
await step("checksums", writeChecksums);
await step(isDryRun ? "npm publish --dry-run" : "npm publish", () => publish(tarball));
for (const file of readdirSync(folder).sort()) {
  const { size } = statSync(join(folder, file));
  console.log(`${(size / 1e6).toFixed(1).padStart(8)} MB  ${file}`);
}

/** What a release must have and this checkout lacks. */
async function unmetConditions(): Promise<string[]> {
  const changelog = await Bun.file(join(ROOT, "CHANGELOG.md")).text();
  const changed = (await $`git status --porcelain`.cwd(ROOT).quiet().nothrow()).stdout.toString().trim();
  const tag = (await $`git tag --points-at HEAD`.cwd(ROOT).quiet().nothrow()).stdout.toString().split("\n");
  return [
    ...(changelog.includes(`\n## ${version}\n`) ? [] : [`CHANGELOG.md has no heading "## ${version}"`]),
    ...(changed === "" ? [] : ["the checkout has changes that are not committed"]),
    ...(tag.includes(`v${version}`) ? [] : [`the commit has no tag v${version}: git tag v${version}`]),
  ];
}

async function step<Result>(what: string, run: () => Promise<Result>): Promise<Result> {
  const startedMs = performance.now();
  process.stdout.write(`${what} … `);
  const result = await run();
  console.log(`${((performance.now() - startedMs) / 1_000).toFixed(1)} s`);
  return result;
}

async function makePackage(): Promise<string> {
  const source = join(folder, "npm");
  await buildPackage(source);
  await $`publint --strict ${source}`.cwd(ROOT).quiet();
  await $`npm pack --pack-destination ${folder} ${source}`.quiet();
  rmSync(source, { recursive: true });
  return join(folder, `${name}-${version}.tgz`);
}

function targets(): Target[] {
  const all = Object.keys(TARGETS) as Target[];
  if (options.only.length === 0) return all;
  const unknown = options.only.filter((target) => !(target in TARGETS));
  if (unknown.length > 0) throw new Error(`unknown target ${unknown[0]}: one of ${all.join(", ")}`);
  return all.filter((target) => options.only.includes(target));
}

function executable(target: Target): string {
  return join(folder, `gateway-${version}-${TARGETS[target]}`);
}

async function makeExecutable(target: Target): Promise<void> {
  await buildExecutable(target, executable(target));
}

/** Docker's names of platforms choose the executable: `docker buildx build --platform linux/amd64,linux/arm64`. */
async function makeImageContext(): Promise<void> {
  const context = join(folder, "image");
  const platforms = { amd64: "bun-linux-x64", arm64: "bun-linux-arm64" } as const;
  for (const [platform, target] of Object.entries(platforms)) {
    if (!targets().includes(target)) continue;
    mkdirSync(join(context, platform), { recursive: true });
    cpSync(executable(target), join(context, platform, "gateway"));
  }
  mkdirSync(join(context, "data"), { recursive: true });
  writeFileSync(join(context, "data/.keep"), "");
  cpSync(join(ROOT, "deploy/Dockerfile.release"), join(context, "Dockerfile"));
}

/** From a lock file without what only development needs: npm leaves out packages that both need. */
async function makeBillOfMaterials(): Promise<void> {
  const alone = join(folder, name);
  mkdirSync(alone);
  const { devDependencies: _, scripts: __, ...needed } = manifest;
  writeFileSync(join(alone, "package.json"), JSON.stringify(needed));
  cpSync(join(ROOT, "package-lock.json"), join(alone, "package-lock.json"));
  await $`npm install --package-lock-only --ignore-scripts --no-audit --no-fund`.cwd(alone).quiet();
  const bill = await $`npm sbom --package-lock-only --sbom-format cyclonedx --sbom-type application`
    .cwd(alone)
    .quiet();
  writeFileSync(join(folder, `gateway-${version}.cdx.json`), bill.stdout);
  rmSync(alone, { recursive: true });
}

async function writeChecksums(): Promise<void> {
  const lines: string[] = [];
  for (const file of readdirSync(folder).sort()) {
    if (!statSync(join(folder, file)).isFile()) continue;
    const hash = createHash("sha256");
    for await (const chunk of createReadStream(join(folder, file))) hash.update(chunk);
    lines.push(`${hash.digest("hex")}  ${basename(file)}\n`);
  }
  writeFileSync(join(folder, "SHA256SUMS"), lines.join(""));
}

async function publish(tarball: string): Promise<void> {
  // Provenance needs a workflow's identity, which a trial on a developer's machine does not have.
  if (isDryRun) await $`npm publish --dry-run --provenance=false ${tarball}`.quiet();
  else await $`npm publish ${tarball}`;
}
