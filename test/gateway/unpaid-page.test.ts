import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ATTACKS } from "../../bench/attacks.ts";

/** docs/unpaid-work.md names, for each resource, the tests that use it up and the attacks of the bench that do. */
const ROOT = join(import.meta.dir, "../..");
const page = readFileSync(join(ROOT, "docs/unpaid-work.md"), "utf8");
const [head = [], , ...rows] = page
  .slice(page.indexOf("| resource"))
  .split("\n\n")[0]!
  .split("\n")
  .map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
const tests = [...new Bun.Glob("test/**/*.ts").scanSync({ cwd: ROOT })]
  .map((file) => readFileSync(join(ROOT, file), "utf8"))
  .join("\n");
const namedIn = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);

test("the page has what it should of each resource", () => {
  expect(head).toEqual([
    "resource",
    "a balance",
    "a network",
    "in all",
    "a paying request meanwhile",
    "test",
    "attack",
  ]);
  expect(rows.length).toBeGreaterThan(20);
  expect(rows.flat().filter((cell) => cell === "" || cell === "–")).toEqual([]);
});

test.each(rows)("%s", (...cells) => {
  const [named, attacks] = [namedIn(cells[5]!), namedIn(cells[6]!)];
  expect(named).not.toEqual([]);
  expect(named.filter((name) => !tests.includes(`test(${JSON.stringify(name)}`))).toEqual([]);
  expect(attacks).not.toEqual([]);
  expect(attacks.filter((name) => !(name in ATTACKS))).toEqual([]);
});

test("each attack of the bench is about a resource of the page", () => {
  const told = new Set(rows.flatMap((cells) => namedIn(cells[6]!)));
  expect(Object.keys(ATTACKS).filter((name) => !told.has(name))).toEqual([]);
});
