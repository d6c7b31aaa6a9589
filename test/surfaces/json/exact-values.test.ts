import { describe, expect, test } from "bun:test";
import { JsonCursor } from "../../../src/surfaces/json/json-cursor.ts";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import { mutated } from "../../fuzz/mutate.ts";
import { Random } from "../../sim/random.ts";
import { ASKED, decode, encode, openRequest } from "../harness.ts";

/** What the cursor says of an object, all of whose members are skipped; what `JSON.parse` says of it. */
function cursorTakes(text: string): boolean {
  const bytes = encode(text);
  const cursor = new JsonCursor();
  cursor.begin(bytes, 0, bytes.length);
  cursor.enterObject();
  while (cursor.nextMember()) cursor.skipOther();
  return cursor.isDone;
}

function parserTakes(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const VALUES = [
  ..."0 -0 1 -1 10 1.5 0.5 -1.5 1e9 1E+9 1.5e-9 00 01 -01 1. .5 -.5 +1 - 1e 1e+ 1.e1 0x1 1_0 NaN Infinity -Infinity".split(
    " ",
  ),
  ..."true false null tru nul True None undefined truefalse nullx".split(" "),
  '""',
  '"a"',
  '"é😀"',
  '"\\" \\\\ \\/ \\b\\f\\n\\r\\t \\u00e9 \\uD800"',
  '"\\x"',
  '"\\u12"',
  '"\\u12g4"',
  '"\t"',
  '"\n"',
  '"\u0001"',
  "'a'",
  '"a',
  "[]",
  "[ ]",
  "[1]",
  "[1,2]",
  "[1 , 2 ]",
  "[1,]",
  "[,1]",
  "[1 2]",
  "[1,,2]",
  "[",
  "]",
  "[1}",
  "{}",
  '{"a":1}',
  '{ "a" : 1 , "b" : [ { "c" : null } ] }',
  '{"a":1,}',
  '{,"a":1}',
  '{"a":1 "b":2}',
  '{"a" 1}',
  '{"a":}',
  "{a:1}",
  '{"a":1]',
  '{"a\n":1}',
  "",
  "1 1",
  "1,1",
  '"a" "b"',
];

describe("a member's value that is passed on unparsed", () => {
  test.each(VALUES)("%j is taken where a parser takes it", (value) => {
    for (const text of [`{"m":${value}}`, `{"a":1,"m":${value},"z":2}`, `{"m": ${value} }`])
      expect([text, cursorTakes(text)]).toEqual([text, parserTakes(text)]);
  });

  test("is never taken where a parser does not take it, however it is spoilt", () => {
    const random = new Random(1);
    const whole = encode(
      '{"id":"c","n":[0,-1.5e3,{"a":[],"b":{}}],"t":true,"f":false,"z":null,"s":"\\u00e9\\n x"}',
    );
    let taken = 0;
    for (let round = 0; round < 20_000; round++) {
      const text = mutated(Buffer.from(whole), random).toString("utf8");
      if (!cursorTakes(text)) continue;
      taken += 1;
      expect([text, parserTakes(text)]).toEqual([text, true]);
    }
    expect(taken).toBeGreaterThan(100);
  });

  test("what begins with a comma, or lacks one, is not taken", () => {
    for (const text of ['{,"a":1}', '{"a":1"b":2}', '{"a":1,,"b":2}', '{"a":1,}', '{"a\u0001":1}'])
      expect([text, cursorTakes(text)]).toEqual([text, false]);
  });
});

const chunk = (more: string, text = '"Hello"') =>
  `data: {"id":"c",${more}"model":"m","choices":[{"index":0,"delta":{"content":${text}},"finish_reason":null}]}\n\n`;
const BROKEN = [
  '"created":00,',
  '"created":1763"x":1,',
  '"fp":"\u0001",',
  '"fp":"\\x",',
  '"fp":[1,],',
  '"fp":tru,',
];

test.each(BROKEN)("an event with %j reaches no client of the same language", (more) => {
  const judge = pairing("chat.completions", "chat.completions").openStream(
    openRequest("chat.completions", true),
    ASKED,
  );
  const good = encode(chunk(""));
  expect(decode(judge.push(good.slice()))).not.toBe("");
  expect(judge.fault).toBeNull();
  expect(decode(judge.push(encode(chunk(more))))).toBe("");
  expect(judge.fault?.message).toBe("an event is not a JSON object");
});

test("nor does one whose text is no JSON", () => {
  const judge = pairing("chat.completions", "chat.completions").openStream(
    openRequest("chat.completions", true),
    ASKED,
  );
  judge.push(encode(chunk("")));
  expect(decode(judge.push(encode(chunk("", '"\\uZZZZ"'))))).toBe("");
  expect(judge.fault).not.toBeNull();
});
