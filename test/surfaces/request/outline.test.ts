import { expect, test } from "bun:test";
import { SURFACE_NAMES } from "../../../src/catalog/catalog.ts";
import { SURFACES } from "../../../src/surfaces/surfaces.ts";
import { refused } from "../../../src/units/errors/refusal.ts";
import { requestCases } from "../../fuzz/requests.ts";
import { rounds } from "../../rounds.ts";
import { Random } from "../../sim/random.ts";
import { bodyOf, compare, MARKS, markedCases, type OutlinedCase, randomCase } from "./outlined.ts";

/**
 * Large bodies are scanned, and their long texts never parsed for hosts of the client's language. Whatever is decided
 * about a request must be what the parser would have had decided: references into the operator's account, members that
 * steer hosts, prices and sizes depend on it.
 */
const differing = (cases: Iterable<OutlinedCase>) => {
  let outlined = 0;
  for (const { surface, body } of cases) {
    try {
      if (compare(surface, body)) outlined++;
    } catch (error) {
      throw new Error(`${surface}: ${body.toString("base64")}`, { cause: error });
    }
  }
  return outlined;
};

test("every mark anywhere in a conversation, spelt with and without escapes, decides what it decides in a parsed body", () => {
  const few = rounds(7, 1);
  const cases = [...markedCases()].filter((_, n) => n % few === 0);
  expect(differing(cases)).toBeGreaterThan(cases.length / 4);
}, 300_000);

test("so does any mix of them with names twice, odd spaces, deep nesting, broken texts and spoilt bytes", () => {
  const random = new Random(Number(process.env.SEED ?? 1));
  const count = Number(process.env.BODIES ?? rounds(1_500, 40_000));
  const cases = function* () {
    for (let n = 0; n < count; n++) yield randomCase(random);
  };
  expect(differing(cases())).toBeGreaterThan(count / 10);
}, 3_600_000);

test("so does whatever the fuzzer of requests sends", () => {
  const cases = requestCases(3, rounds(300, 3_000)).flatMap(({ bytes }) => {
    const sent = Buffer.from(bytes, "base64");
    const body = sent.subarray(sent.indexOf("\r\n\r\n") + 4);
    return SURFACE_NAMES.map((surface) => ({ surface, body }));
  });
  differing(cases);
}, 300_000);

test("a body that breaks off at any byte is refused", () => {
  for (const surface of SURFACE_NAMES) {
    const body = Buffer.from(JSON.stringify(bodyOf(surface, MARKS.slice(-6))));
    for (let length = 0; length < body.length; length += rounds(3, 1)) {
      const cut = body.subarray(0, length);
      compare(surface, cut);
      expect(refused(SURFACES[surface].readRequest(cut, 0))).toBeTrue();
    }
  }
}, 300_000);

const DEEP = `"x":${"[".repeat(200)}${"]".repeat(200)}`;
/** The cursor reads what follows the conversation, not the scan. */
const BEHIND: [what: string, members: string][] = [
  ["a value that is nested too deeply", DEEP],
  ["another model behind such a value", `${DEEP},"model":"test/other"`],
  ["another model", '"model":"test/other"'],
  ["another model, spelt with an escape", '"m\\u006fdel":"test/other"'],
  ["what is no JSON", '"x":NaN'],
  ["two commas", '"x":1,,"y":2'],
  ["another object", '"x":1} {"y":2'],
];
test.each(BEHIND)("a long conversation with %s behind it is refused", (_, members) => {
  for (const surface of SURFACE_NAMES) {
    const whole = JSON.stringify(bodyOf(surface, MARKS.slice(-6)));
    const body = Buffer.from(`${whole.slice(0, -1)},${members}}`);
    compare(surface, body);
    expect(refused(SURFACES[surface].readRequest(body, 0))).toBeTrue();
  }
});

const TEXTS = [
  "A line of a file, and the next.\n",
  "Grüße, 😀 und mehr: ",
  "日本語の文章。",
  'x("\\u00e9", "\t")',
];
test.each(TEXTS)("what is not read is not parsed, and reads as it is: %p", (line) => {
  for (const surface of SURFACE_NAMES)
    for (let shift = 0; shift < 4; shift++) {
      const content = "#".repeat(shift) + line.repeat(1_000);
      const body = Buffer.from(JSON.stringify(bodyOf(surface, [{ role: "user", content }])));
      const read = SURFACES[surface].readRequest(body);
      if (refused(read)) throw new Error(read.message);
      expect(read.list).not.toBeNull();
      expect(JSON.stringify(read.outline).length).toBeLessThan(3_000);
      expect(read.json).toEqual(JSON.parse(body.toString()));
    }
});
