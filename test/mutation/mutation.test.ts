import { afterEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { Random } from "../sim/random.ts";
import { ACCEPTED, isOf } from "./accepted.ts";
import { KINDS, mutantsOf } from "./mutants.ts";
import { ROOMS } from "./rooms.ts";
import { sample } from "./sample.ts";
import { Bench, type Reach, type Result } from "./trial.ts";

describe("a line is broken by", () => {
  test.each([
    ["slot.release();", "call left out", ";"],
    ["await this.journal.sync();", "call left out", ";"],
    ["ended.finally(() => slot?.release());", "call left out", "ended.finally(() => undefined);"],
    ["this.rounds -= 1;", "assignment left out", ";"],
    ["count++;", "assignment left out", ";"],
    [
      "function f(a: A | null) { if (a === null) return; }",
      "guard left out",
      "function f(a: A | null) { if (false) return; }",
    ],
    ["if (a) b = 1;", "condition negated", "if (!(a)) b = 1;"],
    ["const a = b < c;", "boundary moved", "const a = b <= c;"],
    ["const a = b.size - 1;", "one more or fewer", "const a = b.size;"],
    ["const a = b ?? c;", "operand dropped", "const a = b;"],
    ['const SECRETS = ["token", "password"];', "element dropped", 'const SECRETS = ["password"];'],
    ["const a = { stream: true };", "option changed", "const a = { stream: false };"],
    [
      'fetch({ redirect: "manual" }); fetch({ redirect: "follow" });',
      "option changed",
      'fetch({ redirect: "follow" }); fetch({ redirect: "follow" });',
    ],
    ["const a = Math.min(b, c);", "extreme swapped", "const a = Math.max(b, c);"],
  ])("%s: %s", (before, kind, after) => {
    const found = mutantsOf("a.ts", before);
    expect(found.map((one) => [one.kind, one.after] as [string, string])).toContainEqual([kind, after]);
    expect(found.every((one) => one.before === before)).toBeTrue();
  });

  test.each([
    "type A = { a: 1 } | (B extends C ? true : false);",
    'this.log("a", { failed: a > b ? 1 : 2 });',
    "assert(a < b);",
    "throw new Error(String(a < b));",
    "let a = 1; a = 2;",
  ])("none: %s", (source) => {
    expect(mutantsOf("a.ts", source)).toEqual([]);
  });
});

test("a sample is the same for a seed, and its kinds take turns", () => {
  const all = mutantsOf("a.ts", `${"free(1); ".repeat(50)}if (a < b) c();`);
  const drawn = sample(all, 4, new Random(7));
  expect(drawn).toEqual(sample(all, 4, new Random(7)));
  expect(drawn.map(({ kind }) => kind)).toEqual([KINDS[0], KINDS[3], KINDS[4], KINDS[0]]);
});

test("the folders of every room exist", () => {
  const folders = ROOMS.flatMap(({ sources, near, wide }) => [...sources, ...near, ...wide]);
  expect(folders.filter((folder) => !existsSync(folder))).toEqual([]);
});

test("what is accepted is still in the source, with a reason", () => {
  const stale = ACCEPTED.filter(
    (one) =>
      one.reason === "" ||
      !mutantsOf(one.file, readFileSync(one.file, "utf8")).some((mutant) => isOf(one, mutant)),
  );
  expect(stale).toEqual([]);
});

describe("in a copy of the tree", () => {
  const folders: string[] = [];
  afterEach(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
  });

  function project(files: Record<string, string>): string {
    const root = mkdtempSync(join(tmpdir(), "mutated-"));
    folders.push(root);
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, name)), { recursive: true });
      writeFileSync(join(root, name), text);
    }
    symlinkSync(resolve("node_modules"), join(root, "node_modules"));
    Bun.spawnSync(["git", "init", "-q"], { cwd: root });
    return root;
  }

  test("a fault is killed by near tests, by types or by wider tests, or survives", async () => {
    const source = `export function sum(to: number | null, seen: string[]): number {
  if (to === null) return 0;
  let sum = 0;
  for (let n = 1; n <= to; n++) sum += n;
  seen.push("near");
  seen.push("wide");
  seen.push("never");
  return sum;
}
`;
    const importing =
      'import { expect, test } from "bun:test";\nimport { sum } from "../../src/room/sum.ts";\n';
    const root = project({
      ".gitignore": "node_modules\n",
      "tsconfig.json":
        '{ "compilerOptions": { "strict": true, "noEmit": true, "types": [] }, "include": ["src"] }',
      "src/room/sum.ts": source,
      "test/near/sum.test.ts": `${importing}
test("sum", () => { const seen: string[] = []; expect(sum(3, seen)).toBe(6); expect(seen[0]).toBe("near"); });`,
      "test/wide/sum.test.ts": `${importing}
test("log", () => { const seen: string[] = []; sum(1, seen); expect(seen).toContain("wide"); });`,
    });
    const mutants = mutantsOf("src/room/sum.ts", source);
    const [near, wide] = ["test/near/sum.test.ts", "test/wide/sum.test.ts"];
    const bench = new Bench(root);
    const copy = bench.folder;
    try {
      const tests = [near, wide];
      const reaches: Reach[] = [];
      await bench.reach(
        mutants,
        60,
        () => tests.shift(),
        (reach) => reaches.push(reach),
      );
      const all = [...mutants.keys()];
      expect(
        reaches.map(({ test, passes, reached }) => [test, passes, reached.toSorted((a, b) => a - b)]),
      ).toEqual([
        [near, true, all],
        [wide, true, all],
      ]);
      const failing = await bench.failingTypes(mutants);
      const resultOf = async (kind: string, line: number): Promise<[Result, string]> => {
        const mutant = mutants.find((one) => one.kind === kind && one.line === line)!;
        const { result, by } = await bench.tryNear(mutant, [near], 1);
        if (result !== "survived") return [result, by];
        if (failing.has(mutant)) return ["killed by types", "tsc"];
        const { result: widely, by: byWider } = await bench.tryWide(mutant, [{ test: wide, seconds: 1 }]);
        return [widely, byWider];
      };
      expect(await resultOf("boundary moved", 4)).toEqual(["killed", "test/near/sum.test.ts: sum"]);
      expect(await resultOf("guard left out", 2)).toEqual(["killed by types", "tsc"]);
      expect(await resultOf("call left out", 5)).toEqual(["killed", "test/near/sum.test.ts: sum"]);
      expect(await resultOf("call left out", 6)).toEqual(["killed by wider", "test/wide/sum.test.ts: log"]);
      expect(await resultOf("call left out", 7)).toEqual(["survived", ""]);
    } finally {
      bench.close();
    }
    expect(readFileSync(join(root, "src/room/sum.ts"), "utf8")).toBe(source);
    expect(existsSync(copy)).toBeFalse();
  });
});
