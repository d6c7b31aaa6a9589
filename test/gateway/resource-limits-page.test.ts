import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ATTACKS } from "../../bench/attacks.ts";

/** docs/resource-limits.md names, for each resource, the tests that use it up and the attacks of the bench that do. */
const ROOT = join(import.meta.dir, "../..");
const page = readFileSync(join(ROOT, "docs/resource-limits.md"), "utf8");
const [byCredit = [], withoutCredit = []] = page.split("\n| resource").slice(1).map(cellsOf);
const tests = [...new Bun.Glob("test/**/*.ts").scanSync({ cwd: ROOT })]
  .map((file) => readFileSync(join(ROOT, file), "utf8"))
  .join("\n");
const namedIn = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);

/** The rows of a table, below its head. */
function cellsOf(table: string): string[][] {
  const [head = "", , ...lines] = `| resource${table}`.split("\n\n")[0]!.split("\n");
  return [head, ...lines].map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

test.each([
  [byCredit, ["resource", "$0", "$3", "$300", "test", "attack"], 12],
  [
    withoutCredit,
    ["resource", "a balance", "a network", "in all", "a paying request meanwhile", "test", "attack"],
    20,
  ],
] as const)("a table has what it should of each resource", ([head, ...rows], columns, least) => {
  expect(head).toEqual([...columns]);
  expect(rows.length).toBeGreaterThan(least);
  expect(rows.flat().filter((cell) => cell === "" || cell === "–")).toEqual([]);
});

const rows = [...byCredit.slice(1), ...withoutCredit.slice(1)];
test.each(rows)("%s", (...cells) => {
  const [named, attacks] = [namedIn(cells.at(-2)!), namedIn(cells.at(-1)!)];
  expect(named).not.toEqual([]);
  expect(named.filter((name) => !tests.includes(`(${JSON.stringify(name)}`))).toEqual([]);
  if (!cells.at(-1)!.startsWith("none: ")) expect(attacks).not.toEqual([]);
  expect(attacks.filter((name) => !(name in ATTACKS))).toEqual([]);
});

test("each attack of the bench is about a resource of the page", () => {
  const told = new Set(rows.flatMap((cells) => namedIn(cells.at(-1)!)));
  expect(Object.keys(ATTACKS).filter((name) => !told.has(name))).toEqual([]);
});
