import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { linksOf } from "../../src/config/config.ts";
import { configView } from "../../src/config/config-view.ts";
import { goodConfig, problemsOf } from "./fixture.ts";

const folder = mkdtempSync(join(tmpdir(), "host-keys-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const file = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

const configOf = (keys: string, more = "") => `
hosts:
  - id: h
    base_url: https://h.test/v1
    speaks: [chat.completions]
    ${more}
    keys: ${keys}
models:
  - { id: a/b, context_length: 10, max_output_tokens: 5, price: { input: 1, output: 1 }, routes: [{ host: h, model: m }] }
`;
const ENV = { FIRST: "sk-first", SPACED: " sk-spaced\n", EMPTY: "", WRONG: "sk secret" };

test("keys come from variables and files, in the order of the file, without line breaks around them", () => {
  const path = file("good", "sk-file\n");
  const config = goodConfig(
    configOf(`[{ env: FIRST }, { env: SPACED, weight: 3 }, { file: "${path}", rpm: 5 }]`),
    ENV,
  );
  expect(config.catalog.hosts.get("h")!.keys).toEqual([
    { name: "FIRST", from: "env", weight: 1, secret: { text: "sk-first" } },
    { name: "SPACED", from: "env", weight: 3, secret: { text: "sk-spaced" } },
    { name: path, from: "file", weight: 1, rpm: 5, secret: { text: "sk-file" } },
  ]);
  const shown = JSON.stringify(configView(config, linksOf(config, "http://127.0.0.1:1")));
  expect(shown).toContain(`{"file":"${path}","weight":1,"rpm":5}`);
  expect(shown).not.toContain("sk-");
});

describe("what is wrong is named with its place, and no key is shown", () => {
  const cases: [keys: string, more: string, problem: string][] = [
    [
      "[{ env: FIRST }]",
      "api_key: sk-other",
      "hosts[0].keys: found `keys` next to `api_key`, expected one of the two",
    ],
    [
      "[{ weight: 2 }]",
      "",
      "hosts[0].keys[0]: found neither `file` nor `env`, expected `file` or `env`, and only one of them",
    ],
    ["[{ env: FIRST, file: f }]", "", "hosts[0].keys[0]: found both `file` and `env`"],
    ["[]", "", "hosts[0].keys: found an empty list, expected a list of keys"],
    [
      "[{ env: FIRST }, { env: FIRST }]",
      "",
      'hosts[0].keys[1].env: found "FIRST", expected a key that is not listed before',
    ],
    [
      "[{ env: GONE }]",
      "",
      'hosts[0].keys[0].env: found "GONE": the variable is not set, expected a variable or file',
    ],
    ["[{ env: EMPTY }]", "", 'hosts[0].keys[0].env: found "EMPTY": the variable is empty'],
    ["[{ env: WRONG }]", "", 'found "WRONG": the variable has characters that no header can hold'],
    [
      "[{ file: /nowhere/key }]",
      "",
      'hosts[0].keys[0].file: found "/nowhere/key": the file cannot be read (ENOENT)',
    ],
    [`[{ file: "${file("empty", "\n")}" }]`, "", "the file is empty"],
    ["[{ env: FIRST, rpm: 0 }]", "", "hosts[0].keys[0].rpm: found 0, expected a whole number from 1"],
    [
      "[{ env: FIRST, weight: 1001 }]",
      "",
      "hosts[0].keys[0].weight: found 1001, expected a whole number from 1 to 1000",
    ],
    [
      `[${Array.from({ length: 33 }, (_, n) => `{ env: K${n} }`)}]`,
      "",
      "hosts[0].keys: found 33 keys, expected at most 32",
    ],
  ];
  for (const [keys, more, problem] of cases) {
    test(`${keys.slice(0, 60)} ${more}`, () => {
      const problems = problemsOf(configOf(keys, more), ENV);
      expect(problems).toContain(problem);
      expect(problems).not.toMatch(/sk[- ]/);
    });
  }
});
