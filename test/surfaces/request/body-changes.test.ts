import { expect, test } from "bun:test";
import { BodyChanges } from "../../../src/surfaces/request/body-changes.ts";
import { Random } from "../../sim/random.ts";

function changed(body: string, changes: Readonly<Record<string, string | null>>): string {
  const all = new BodyChanges();
  for (const [name, value] of Object.entries(changes)) all.set(name, value);
  return Buffer.from(all.applyTo(Buffer.from(body))).toString();
}

const CASES: readonly (readonly [
  says: string,
  body: string,
  changes: Readonly<Record<string, string | null>>,
  after: string,
])[] = [
  ["a value is replaced where it stands", '{ "a" : 1 , "b" : 2 }', { a: '"x"' }, '{ "a" : "x" , "b" : 2 }'],
  ["the first member is dropped", '{"a":1,"b":2}', { a: null }, '{"b":2}'],
  ["the first two are dropped", '{"a":1,"b":2,"c":3}', { a: null, b: null }, '{"c":3}'],
  ["one in the middle is dropped", '{"a":1,"b":2,"c":3}', { b: null }, '{"a":1,"c":3}'],
  ["the last is dropped", '{"a":1,"b":2}', { b: null }, '{"a":1}'],
  ["all are dropped", '{"a":1,"b":2}', { a: null, b: null }, "{}"],
  ["all are dropped and one is added", '{"a":1,"b":2}', { a: null, b: null, c: "3" }, '{"c":3}'],
  ["one is added to nothing", "{}", { a: "1" }, '{"a":1}'],
  ["two are added at the end", '{"a":1}', { b: "2", c: "3" }, '{"a":1,"b":2,"c":3}'],
  ["what is not there cannot be dropped", '{"a":1}', { b: null }, '{"a":1}'],
  ["members inside of members stay", '{"b":{"a":1},"a":2}', { a: "3" }, '{"b":{"a":1},"a":3}'],
  [
    "numbers, spaces and signs stay as they are spelt",
    '{"n":1.0e2,"s":"\\u00e9\\/"}',
    { a: "1" },
    '{"n":1.0e2,"s":"\\u00e9\\/","a":1}',
  ],
  ["spaces around the object stay", ' \n{"a":1}\n', { b: "2" }, ' \n{"a":1,"b":2}\n'],
];

for (const [says, body, changes, after] of CASES) {
  test(says, () => expect(changed(body, changes)).toBe(after));
}

test("seeded: any changes of any object come to what they come to in memory", () => {
  const random = new Random(7);
  for (let round = 0; round < 1_000; round++) {
    const names = ["a", "ab", "model", "models", "n"];
    const object: Record<string, unknown> = {};
    for (const name of names) if (random.chance(0.6)) object[name] = random.pick(VALUES);
    const changes: Record<string, string | null> = {};
    const expected = { ...object };
    for (const name of names) {
      if (random.chance(0.5)) continue;
      const value = random.pick([...VALUES, undefined]);
      changes[name] = value === undefined ? null : JSON.stringify(value);
      if (value === undefined) delete expected[name];
      else expected[name] = value;
    }
    const body = JSON.stringify(object, null, random.pick([0, 2]));
    expect(JSON.parse(changed(body, changes))).toEqual(expected);
  }
});

const VALUES: readonly unknown[] = [1, "", 'a"},{', null, [1, { a: "]" }], { model: "x" }, true];
