import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { $ } from "bun";
import { Cluster } from "../../postgres/cluster.ts";
import { isFleet, KINDS, type Kind, upgrade, type Version } from "./upgrade.ts";

/**
 * The release before and this one, and this one and a next one, in turn on one store and under load; then each
 * release's own tests of the store on the tables of the one after it.
 *
 *     bun run test/process/upgrade/run.ts --before v0.1.0 [--kind postgres] [--clients 24] [--answers 300] [--without-tests]
 *
 * The two are installed from tarballs of their packages, as an upgrading operator has them.
 */
const { values: options } = parseArgs({
  options: {
    /** A tag or commit. */
    before: { type: "string" },
    kind: { type: "string", multiple: true, default: Object.keys(KINDS) },
    clients: { type: "string", default: "24" },
    /** At least so many are answered before and after each replacement. */
    answers: { type: "string", default: "300" },
    "without-tests": { type: "boolean", default: false },
  },
});
const ROOT = join(import.meta.dir, "../../..");
const TESTED = ["test/store", "test/ledger", "test/customers"];
const work = mkdtempSync(join(tmpdir(), "upgrade-"));
const checkout = join(work, "before");
const cluster = new Cluster();
const MAX_SHOWN = 5;
let failures = 0;
try {
  if (options.before === undefined) throw new Error("--before <tag or commit> is missing");
  await $`git worktree add --quiet --detach ${checkout} ${options.before}`.cwd(ROOT);
  symlinkSync(join(ROOT, "node_modules"), join(checkout, "node_modules"));
  const before = await installed(options.before, checkout);
  const now = await installed("now", ROOT);
  const next: Version = { name: "next", command: [join(import.meta.dir, "next-version.ts")] };
  await cluster.create();
  const load = { clients: Number(options.clients), answers: Number(options.answers) };
  for (const [older, newer] of [
    [before, now],
    [now, next],
  ] as const) {
    for (const kind of options.kind as Kind[]) {
      const store = isFleet(kind) ? await cluster.database() : null;
      const { errors, wrong, ...seen } = await upgrade(kind, older, newer, { store, ...load });
      console.log(`${older.name} → ${newer.name}, ${kind}:`, seen, [...errors, ...wrong].slice(0, MAX_SHOWN));
      failures += errors.length + wrong.length;
    }
  }
  if (!options["without-tests"]) {
    await testIn(ROOT, join(import.meta.dir, "next-schema.ts"));
    await testIn(checkout, presentSchemaFor(checkout));
  }
} finally {
  await cluster.stop();
  await $`git worktree remove --force ${checkout}`.cwd(ROOT).quiet().nothrow();
  rmSync(work, { recursive: true, force: true });
}
process.exit(failures === 0 ? 0 : 1);

/** The package of a checkout, packed and installed in an empty folder. */
async function installed(name: string, root: string): Promise<Version> {
  const folder = join(work, `${name.replaceAll(/[^A-Za-z0-9.]/g, "-")}-package`);
  const prefix = join(folder, "prefix");
  mkdirSync(prefix, { recursive: true });
  const build = `import { buildPackage } from "./scripts/artifacts.ts"; await buildPackage(${JSON.stringify(join(folder, "npm"))});`;
  await $`${process.execPath} -e ${build}`.cwd(root);
  await $`npm pack --pack-destination ${folder} ${join(folder, "npm")}`.quiet();
  const tarball = readdirSync(folder).find((file) => file.endsWith(".tgz"))!;
  await $`npm install --prefer-offline --no-audit --no-fund ${join(folder, tarball)}`.cwd(prefix).quiet();
  const main = join(prefix, "node_modules/text-generation-gateway/lib/main.js");
  return { name, command: [main, "start"] };
}

/** Tests of a checkout on tables that a later release made. */
async function testIn(root: string, preload: string): Promise<void> {
  const { exitCode, stderr } =
    await $`${process.execPath} test --timeout 300000 --preload ${preload} ${TESTED}`
      .cwd(root)
      .quiet()
      .nothrow();
  const lines = stderr.toString().split("\n");
  const shown = lines.filter((line) => /^(\(fail\)|\s*\d+ (pass|fail)$)/.test(line));
  console.log(`tests of ${root === ROOT ? "now" : options.before} on the later schema:`, shown);
  if (exitCode !== 0) failures++;
}

/** What gives the older release's processes this release's migrations. */
function presentSchemaFor(root: string): string {
  const file = join(work, "present-schema.ts");
  // Where the release before has them, in files of their own until migrations were one list.
  const folder = join(root, "src/store/schema");
  const pathOf = (own: string) => join(folder, existsSync(join(folder, own)) ? own : "migrations.ts");
  const present = join(ROOT, "src/store/schema/migrations.ts");
  const text = [
    ["SQLITE_SCHEMA", "sqlite-migrations.ts"],
    ["POSTGRES_SCHEMA", "postgres-migrations.ts"],
  ].map(
    ([name, own]) => `
import { ${name} as own${name} } from ${JSON.stringify(pathOf(own!))};
import { ${name} as present${name} } from ${JSON.stringify(present)};
own${name}.migrations.splice(0, Infinity, ...present${name}.migrations);
own${name}.oldestUser = present${name}.oldestUser;
`,
  );
  writeFileSync(file, text.join(""));
  return file;
}
