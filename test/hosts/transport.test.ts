import { expect, test } from "bun:test";
import { beginsWhole } from "../../src/hosts/transport.ts";

const JSON_TYPE = "application/json; charset=utf-8";

test.each([
  ["an object", "{", "text/event-stream", true],
  ["an object behind spaces and line breaks", " \r\n\t {", "text/event-stream", true],
  ["an object behind a byte order mark", "\ufeff{", "text/event-stream", true],
  ["an event, whatever it is called", "data: {", JSON_TYPE, false],
  ["spaces alone, of JSON", " \n", JSON_TYPE, true],
  ["spaces alone, of a stream", " \n", "text/event-stream", false],
])("a host's first bytes are %s: %j in %s begins a whole answer: %p", (_, text, type, isWhole) => {
  const headers = new Map([["content-type", type]]);
  expect(beginsWhole(new TextEncoder().encode(text), { headers })).toBe(isWhole);
});
