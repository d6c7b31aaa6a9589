import { expect, test } from "bun:test";
import { csvLine } from "../../src/units/csv.ts";

test.each([
  ["plain", "plain"],
  ["openai/gpt-4o-mini", "openai/gpt-4o-mini"],
  ['with "quotes", and a comma', '"with ""quotes"", and a comma"'],
  ["two\nlines", '"two\nlines"'],
  ["=1+1", "'=1+1"],
  ['=HYPERLINK("http://evil.example","x")', `"'=HYPERLINK(""http://evil.example"",""x"")"`],
  ["+1", "'+1"],
  ["-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"],
  ["@SUM(A1)", "'@SUM(A1)"],
  ["\t=1", `"'\t'=1"`],
  ["\r=1", `"'\r'=1"`],
  ["\n=1", `"'\n'=1"`],
  // Where spreadsheets separate cells by semicolons or tabs, and know no quotes within a cell.
  ["x;=1+1;", "x;'=1+1;"],
  ["x;;+1;a=b", "x;;'+1;a=b"],
  ['x;"=1+1"', `"x;""'=1+1"""`],
  ["x\t@A1", `"x\t'@A1"`],
  ["x\n-1", `"x\n'-1"`],
  [-0.5, "-0.5"],
  [null, ""],
])("%j is written as %s", (cell, written) => {
  expect(csvLine([cell, "b"])).toBe(`${written},b\n`);
});
