import { describe, expect, test } from "bun:test";
import { MAX_ARROWS } from "./layout.ts";
import { readModule } from "./module.ts";
import { RULES } from "./rules.ts";
import { tooFrequent, WORDS } from "./words.ts";

type Files = Readonly<Record<string, string>>;

const problems = (rule: keyof typeof RULES, files: Files): string[] =>
  RULES[rule](Object.entries(files).map(([path, text]) => readModule({ path, text })));

describe("imports", () => {
  const rows: [rule: keyof typeof RULES, mistake: string, files: Files, found: string][] = [
    ["every room has a floor", "a new folder", { "attic/a.ts": "" }, "attic"],
    [
      "imports point down",
      "a higher room",
      { "units/a.ts": 'import "../http/app.ts";' },
      "units/a.ts → http/app.ts",
    ],
    [
      "imports point down",
      "a type of a higher room",
      { "units/a.ts": 'import type { App } from "../http/app.ts";' },
      "units/a.ts → http/app.ts",
    ],
    [
      "imports point down",
      "a higher room, loaded later",
      { "units/a.ts": 'const app = () => import("../http/app.ts");' },
      "units/a.ts → http/app.ts",
    ],
    [
      "imports point down",
      "another room of the floor",
      { "catalog/a.ts": 'export * from "../tokens/tokens.ts";' },
      "catalog/a.ts → tokens/tokens.ts",
    ],
    [
      "imports point down",
      "the gateway in its configuration",
      { "config/defaults.ts": 'import "../server/gateway.ts";' },
      "config/defaults.ts → server/gateway.ts",
    ],
    [
      "separate folders do not import each other",
      "cards that use the chain",
      { "payments/rails/stripe/a.ts": 'import "../x402/chain.ts";' },
      "payments/rails/stripe/a.ts → payments/rails/x402/chain.ts",
    ],
    [
      "Elysia is imported on the HTTP floor and nowhere below",
      "Elysia in generation",
      { "generation/a.ts": 'import { Elysia } from "elysia";' },
      "generation/a.ts",
    ],
    [
      "no circles of imports",
      "two files",
      { "units/a.ts": 'import "./b.ts";', "units/b.ts": 'import { a } from "./a.ts";' },
      "units/a.ts, units/b.ts",
    ],
    [
      "no circles of imports",
      "three files",
      {
        "units/a.ts": 'import "./b.ts";',
        "units/b.ts": 'import { type B, c } from "./c.ts";',
        "units/c.ts": 'export * from "./a.ts";',
      },
      "units/a.ts, units/b.ts, units/c.ts",
    ],
    [
      "parts that requests share are created in one file",
      "a second one",
      { "http/app.ts": "const health = new Health(clock);" },
      "http/app.ts: Health",
    ],
    [
      "no type name is declared twice",
      "an interface and a class",
      { "units/a.ts": "interface Way {}", "units/b.ts": "export class Way {}" },
      "Way: units/a.ts,units/b.ts",
    ],
  ];
  test.each(rows)("%s: not with %s", (rule, _mistake, files, found) => {
    expect(problems(rule, files)).toEqual([found]);
  });

  test("an import of a type closes a circle of types alone", () => {
    const files = {
      "units/a.ts": 'import type { B } from "./b.ts";',
      "units/b.ts": 'import { type A, a } from "./a.ts";',
    };
    expect(problems("no circles of imports", files)).toEqual([]);
    expect(problems("no circles of imports with types", files)).toEqual(["units/a.ts, units/b.ts"]);
  });

  test("arrows are counted once for two rooms, however many imports they stand for", () => {
    const room = (at: number) => `room${at}`;
    const files = Object.fromEntries(
      Array.from({ length: MAX_ARROWS + 1 }, (_, at) => [
        `${room(at)}/a.ts`,
        'import "../units/a.ts"; import "../units/b.ts";',
      ]),
    );
    const rule = "arrows between rooms do not increase";
    expect(problems(rule, files)).toEqual([
      `${MAX_ARROWS + 1} arrows; at most ${MAX_ARROWS}: see \`bun run rooms\``,
    ]);
    delete files[`${room(0)}/a.ts`];
    expect(problems(rule, files)).toEqual([]);
  });
});

describe("pure code", () => {
  const rule = "clock, randomness and I/O are passed in";

  test.each([
    ['export const page = await fetch("http://localhost");', "fetch"],
    ['await Bun.write("file", "");', "Bun.write"],
    ["export const today = new Date();", "new Date()"],
    ["export const today = Date();", "Date"],
    ["export const now = () => Date.now();", "Date.now"],
    ["export const { now } = Date;", "Date"],
    ['export const fs = require("node:fs");', "require"],
    ['import { readFileSync } from "node:fs";', "node:fs readFileSync"],
    ['import "node:fs";', "node:fs"],
    ['import { randomUUID } from "node:crypto";', "node:crypto randomUUID"],
    ['export const disk = () => import("node:fs");', "node:fs *"],
    ['export { readFile } from "node:fs/promises";', "node:fs/promises readFile"],
    ["export const chance = () => Math.random();", "Math.random"],
    ["export const { random } = Math;", "Math"],
    ["export const id = () => crypto.randomUUID();", "crypto.randomUUID"],
    ["export const bytes = crypto.getRandomValues(new Uint8Array(8));", "crypto.getRandomValues"],
    ["export const { HOME } = process.env;", "process.env"],
    ["export const later = () => void setTimeout(later, 1);", "setTimeout"],
    ["export const soon = () => setImmediate(soon);", "setImmediate"],
    ["export const started = performance.now();", "performance.now"],
    ["export const all = globalThis;", "globalThis"],
    ["export const folder = import.meta.dir;", "import"],
    ['export const thread = new Worker("thread.ts");', "new Worker(…)"],
    ["{ const fetch = 1; }\nexport const page = () => fetch();", "fetch"],
  ])("%s", (text, found) => {
    expect(problems(rule, { "units/assert.ts": text })).toEqual([`units/assert.ts: ${found}`]);
    expect(problems(rule, { "store/disk.ts": text })).toEqual([]);
  });

  test.each([
    "export const load = async ({ fetch }: Deps) => fetch(new URL('http://localhost'));",
    "export const iso = (at: number) => new Date(at).toISOString() + Date.UTC(2025, 0);",
    "class Clock { fetch() { return this.fetch(); } }",
    "export interface Clock { readonly process: Date; setTimeout: typeof setTimeout }",
    'import type { Server } from "bun";',
    'import { createHash } from "node:crypto";',
    "function crypto(): void {}\ncrypto();",
    'export const text = "fetch(Date.now())"; // Math.random()',
    "for (const [process, { performance }] of []) console(process, performance); function console() {}",
    "try {} catch (fetch) { String(fetch); }",
  ])("may have %s", (text) => {
    expect(problems(rule, { "units/assert.ts": text })).toEqual([]);
  });
});

describe("state of a module", () => {
  const rule = "modules have no state";

  test.each([
    ["export const seen = new Map();", "seen"],
    ["const seen: Map<string, number> = new Map();", "seen"],
    ["const seen = new Set<string>();", "seen"],
    ["const seen = new WeakMap<object, number>();", "seen"],
    ["const list: string[] = [];", "list"],
    ["let count = 0;", "count"],
    ["const counts = { all: 0 }; export const next = () => counts.all++;", "counts"],
    ["const counts = { of: { all: 0 } }; export const next = () => { counts.of.all = 1; };", "counts"],
    ["const list = [1]; export const add = (one: number) => list.push(one);", "list"],
    ["const list = [1]; export const set = (one: number) => { list[0]! = one; };", "list"],
    ["const table = { a: [1] }; export const drop = () => delete table.a;", "table"],
    ['import { TABLE } from "./b.ts"; TABLE.a = 1;', "TABLE"],
  ])("%s", (text, found) => {
    expect(problems(rule, { "ledger/a.ts": text })).toEqual([`ledger/a.ts: ${found}`]);
  });

  test.each([
    "const NONE: readonly string[] = [];",
    "const NONE: ReadonlyMap<string, number> = new Map();",
    'const NAMES = new Set(["a"]); export const isName = (name: string) => NAMES.has(name);',
    "export function count() { const seen = new Map(); let all = 0; all++; seen.set(1, all); }",
    "const list = [1]; export const more = () => { const list: number[] = []; list.push(1); };",
    "export const add = (list: number[]) => list.push(1);",
    "const FIRST = 0; export const set = (list: number[]) => { list[FIRST] = 1; };",
  ])("none: %s", (text) => {
    expect(problems(rule, { "ledger/a.ts": text })).toEqual([]);
  });
});

describe("words", () => {
  const table = Object.fromEntries(
    ["told", "look", "Of", "MOST"].map((word) => [word, { ...WORDS[word]!, max: 0 }]),
  );

  test.each([
    ["a comment", "src/a.ts", "/** Told of each end. */", "told"],
    ["a name", "src/a.ts", "const toldOf = 1;", "told"],
    ["a text", "src/a.ts", 'refuse("it has been told to stop");', "told"],
    ["a document", "docs/a.md", "It is told.", "told"],
    ["a file", "src/untold/told.ts", "", "told"],
    ["a constant", "src/a.ts", "const LOOK_MS = 1;", "look"],
    ["the start of a constant", "src/a.ts", "const MOST_BYTES = 1;", "MOST"],
    ["the start of a sentence", "src/a.ts", "/**\n * It ends.\n * Of what it knows, nothing.\n */", "Of"],
  ])("in %s", (_where, path, text, word) => {
    expect(tooFrequent([{ path, text }], table)).toEqual([expect.stringContaining(`"${word}" 1 times`)]);
    expect(tooFrequent([{ path, text }], { ...table, [word]: { ...table[word]!, max: 1 } })).toEqual([]);
  });

  test("in no file that needs it", () => {
    const except = { "docs/a.md": "documents a column" };
    const excepting = { ...table, told: { ...table.told!, except } };
    const text = "It is told.";
    expect(tooFrequent([{ path: "docs/a.md", text }], excepting)).toEqual([]);
    expect(tooFrequent([{ path: "docs/b.md", text }], excepting)).not.toEqual([]);
  });

  test.each([
    ["plain English, where only the name is wrong", "src/a.ts", "// Look at the log."],
    ["a field of a wire language", "src/a.ts", 'const field = "told";'],
    ["within a name", "src/a.ts", "const atMost = 1;"],
    ["within a sentence", "src/a.ts", "// The end of a stream."],
  ])("not in %s", (_where, path, text) => {
    expect(tooFrequent([{ path, text }], table)).toEqual([]);
  });
});
