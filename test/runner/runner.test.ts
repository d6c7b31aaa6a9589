import { afterEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { cleanEnvironment, RUN_MARK } from "../environment.ts";
import { until } from "../fakes/until.ts";
import { hasRoom } from "./spare.ts";

/** The runner, on test files of its own. */
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function project(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), "runner-"));
  folders.push(folder);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

const start = (cwd: string, ...args: string[]) =>
  Bun.spawn([process.execPath, "--no-env-file", join(import.meta.dir, "run.ts"), ...args], {
    cwd,
    env: { ...cleanEnvironment(), OPENAI_API_KEY: "sk-caller" },
    stdout: "pipe",
    stderr: "pipe",
  });

async function run(cwd: string, ...args: string[]) {
  const child = start(cwd, ...args);
  const [out, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  return { out, code };
}

const testing = (body: string) => `import { expect, test } from "bun:test";\n${body}`;
const PASSES = testing('test("one", () => {});');
/** Starts a process that never ends, says which, and goes on with this. */
const STARTS = (then: string) =>
  testing(`test("two", async () => {
  const child = Bun.spawn([process.execPath, "-e", "setInterval(() => {}, 1000)"], { detached: true, env: process.env });
  require("node:fs").writeFileSync("pid", String(child.pid));
  child.unref();
  ${then}
});`);

const lives = (pid: number): boolean => {
  try {
    // A process that ended and was not waited for is none.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
};
const pidIn = (folder: string) => Number(readFileSync(join(folder, "pid"), "utf8"));

test("all files pass: it says how many tests did, last and as .ci/run reads it, and ends with 0", async () => {
  const folder = project({ "test/a.test.ts": PASSES, "test/b/c.test.ts": PASSES });
  const { out, code } = await run(folder);
  expect(out).toEndWith("\n 2 pass\n 0 skip\n 0 fail\n\n2 passed, 0 failed\n");
  expect(out).toMatch(/^1\/2 test\/\S+: 1 pass \([\d.]+ s, CPU [\d.]+ s, \d+ MB\)$/m);
  expect(code).toBe(0);
});

test("one fails: its words are printed, the other's result stands, and what it left running is ended", async () => {
  const folder = project({ "test/a.test.ts": STARTS("expect(1).toBe(2);"), "test/b/c.test.ts": PASSES });
  const { out, code } = await run(folder);
  expect(out).toContain("Expected: 2");
  expect(out).toContain("Left running, and ended: ");
  expect(out).toEndWith("\nfailed: test/a.test.ts\n\n 1 pass\n 0 skip\n 1 fail\n\n1 passed, 1 failed\n");
  expect(code).toBe(1);
  await until(() => !lives(pidIn(folder)));
});

test("a file that kills its own process, or cannot be read, has failed", async () => {
  const folder = project({
    "test/a/a.test.ts": STARTS('process.kill(process.pid, "SIGKILL");\n  await new Promise(() => {});'),
    "test/b/b.test.ts": "import 'none';",
    "test/c/c.test.ts": PASSES,
  });
  const { out, code } = await run(folder);
  expect(out).toContain("The process was ended by SIGKILL.");
  expect(out).toEndWith("\n1 passed, 2 failed\n");
  expect(code).toBe(1);
  await until(() => !lives(pidIn(folder)));
});

test("a run that is stopped leaves nothing behind", async () => {
  const folder = project({ "test/a.test.ts": STARTS("await new Promise(() => {});") });
  const child = start(folder);
  await until(() => existsSync(join(folder, "pid")) && pidIn(folder) > 0);
  child.kill("SIGTERM");
  expect(await child.exited).toBe(143);
  await until(() => !lives(pidIn(folder)));
});

test("a plain `bun test` of a file that fails leaves nothing behind either", async () => {
  const folder = project({
    "bunfig.toml": `[test]\npreload = ["${join(import.meta.dir, "../preload.ts")}"]\n`,
    "a.test.ts": STARTS("expect(1).toBe(2);"),
  });
  const { [RUN_MARK]: _, ...env } = cleanEnvironment();
  const child = Bun.spawn([process.execPath, "test", "./a.test.ts"], { cwd: folder, env, stderr: "ignore" });
  expect(await child.exited).toBe(1);
  await until(() => !lives(pidIn(folder)));
});

test("providers' keys of the caller, and those in a `.env`, reach neither tests nor what they start", async () => {
  const folder = project({
    ".env": "ANTHROPIC_API_KEY=sk-file\n",
    "test/a.test.ts":
      testing(`import { cleanEnvironment } from "${join(import.meta.dir, "../environment.ts")}";
test("three", () => {
  const names = "[process.env.OPENAI_API_KEY, process.env.ANTHROPIC_API_KEY]";
  const started = Bun.spawnSync([process.execPath, "-p", names], { env: cleanEnvironment() });
  expect(started.stdout.toString()).toContain("[ undefined, undefined ]");
  expect(eval(names)).toEqual([undefined, undefined]);
});`),
  });
  expect((await run(folder)).out).toEndWith("\n1 passed, 0 failed\n");
});

test("tests that take long run apart, by their file's name; tests that are skipped are counted, with the reason", async () => {
  const skips = testing('console.warn("skipped: moons (no telescope)");\ntest.skip("moon", () => {});');
  const folder = project({
    "test/a.test.ts": skips,
    "test/b.long.test.ts": PASSES,
    "test/c/d.test.ts": PASSES,
  });
  const short = (await run(folder)).out;
  expect(short).toContain("skipped: moons (no telescope)\n");
  expect(short).toEndWith("\n 1 pass\n 1 skip\n 0 fail\n\n1 passed, 0 failed\n");
  expect((await run(folder, "--long")).out).toContain("1/1 test/b.long.test.ts: 1 pass");
  const all = (await run(folder, "--all", "--jobs", "1")).out;
  expect(all).toContain("1/3 test/b.long.test.ts: 1 pass");
  expect(all).toEndWith("\n2 passed, 0 failed\n");
  expect((await run(folder, "c/d")).out).toStartWith("1 test files in 1 processes");
});

test.each<[what: string, load: object, may: boolean]>([
  ["while two of four cores wait", {}, true],
  ["not while they all work", { busy: 0.9 }, false],
  ["not once memory is taken", { megabytes: 1_000 }, false],
  ["not without end", { running: 8 }, false],
])("more processes than cores run %s", (_, load, may) => {
  expect(hasRoom({ running: 4, jobs: 4, busy: 0.5, megabytes: 300, ...load })).toBe(may);
});

describe("--again", () => {
  /** Fails where it has not run before. */
  const FAILS_ONCE = testing(`test("four", async () => {
  const ran = await Bun.file("ran").exists();
  await Bun.write("ran", "");
  expect(ran).toBe(true);
});`);

  test("what fails and then passes alone is reported as unsteady, with its failure, and the run passes", async () => {
    const folder = project({ "test/a.test.ts": FAILS_ONCE, "test/b/c.test.ts": PASSES });
    const { out, code } = await run(folder, "--again");
    expect(out).toContain("again test/a.test.ts: 1 pass");
    expect(out.slice(out.indexOf("\nunsteady: test/a.test.ts\n"))).toContain("Expected: true");
    expect(out).toEndWith("\n2 passed, 0 failed\n");
    expect(code).toBe(0);
  });

  test("a small run of a bench may run again, also next to a failure that stands", async () => {
    const failing = testing('test("five", () => expect(1).toBe(2));');
    const folder = project({ "test/bench/a.long.test.ts": FAILS_ONCE, "test/sim/b.test.ts": failing });
    const { out, code } = await run(folder, "--all", "--again");
    expect(out).toContain("again test/bench/a.long.test.ts: 1 pass");
    expect(out).toEndWith("\n1 passed, 1 failed\n");
    expect(code).toBe(1);
  });

  test("what fails twice has failed", async () => {
    const { out, code } = await run(
      project({ "test/a.test.ts": testing('test("five", () => expect(1).toBe(2));') }),
      "--again",
    );
    expect(out).toContain("again test/a.test.ts: 0 pass, 1 FAIL");
    expect(out).not.toContain("unsteady");
    expect(out).toEndWith("\n0 passed, 1 failed\n");
    expect(code).toBe(1);
  });

  test.each(["test/a.long.test.ts", "test/sim/a.test.ts", "test/network/a.test.ts"])(
    "a failure in %s stands: nothing runs again",
    async (file) => {
      const { out, code } = await run(project({ [file]: FAILS_ONCE }), "--all", "--again");
      expect(out).not.toContain("again ");
      expect(out).toEndWith("\n0 passed, 1 failed\n");
      expect(code).toBe(1);
    },
  );

  test("without it, nothing runs again", async () => {
    expect((await run(project({ "test/a.test.ts": FAILS_ONCE }))).code).toBe(1);
  });
});

test("an option that it does not know runs nothing and is reported with those that it knows; so is --help", async () => {
  const folder = project({ "test/a.test.ts": PASSES });
  const wrong = start(folder, "--lnog");
  expect(await new Response(wrong.stderr).text()).toContain("'--lnog'");
  expect(await wrong.exited).toBe(2);
  const { out, code } = await run(folder, "--help");
  expect(out).toStartWith("npm test [-- ");
  expect(code).toBe(0);
});
