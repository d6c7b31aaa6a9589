import { expect, test } from "bun:test";
import { BodyChanges } from "../../../src/surfaces/request/body-changes.ts";
import { Random } from "../../sim/random.ts";

/** Both ways to make the changes. */
function changed(body: string, changes: Readonly<Record<string, string | null>>): string {
  const bytes = Buffer.from(body);
  const text = Buffer.from(changesOf(changes).applyTo(bytes)).toString();
  expect(Buffer.concat(partsOf(bytes, changes)).toString()).toBe(text);
  expect(bytes.toString()).toBe(body);
  return text;
}

const partsOf = (body: Uint8Array, changes: Readonly<Record<string, string | null>>) =>
  changesOf(changes).partsOf(body, null);

function changesOf(changes: Readonly<Record<string, string | null>>): BodyChanges {
  const all = new BodyChanges();
  for (const [name, value] of Object.entries(changes)) all.set(name, value);
  return all;
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
    // Long enough to be sent in parts.
    const long = `${" ".repeat(random.below(40_000))}${body}${"\n".repeat(random.below(40_000))}`;
    expect(JSON.parse(changed(long, changes))).toEqual(expected);
  }
});

test("what stays of a large body is not copied, and what is small is one part", () => {
  const body = (bytes: number) => Buffer.from(`{"model":"a","text":"${"x".repeat(bytes)}","stream":true}`);
  const parts = (bytes: number, changes: Readonly<Record<string, string | null>>) => {
    const sent = body(bytes);
    const own = partsOf(sent, changes);
    return {
      own,
      copied: own.filter(({ buffer }) => buffer !== sent.buffer).map((part) => Buffer.from(part).toString()),
    };
  };
  expect(parts(20_000, { model: '"b"', n: "1" }).copied).toEqual(['"b"', ',"n":1']);
  expect(parts(20_000, {}).own).toHaveLength(1);
  expect(parts(20_000, { stream: null, model: null }).copied).toEqual([]);
  expect(parts(100, { model: '"b"', n: "1" }).own).toHaveLength(1);
});

const VALUES: readonly unknown[] = [1, "", 'a"},{', null, [1, { a: "]" }], { model: "x" }, true];
