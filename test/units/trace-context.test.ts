import { expect, test } from "bun:test";
import { formatTraceparent, openTrace, readTraceparent } from "../../src/units/trace-context.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

test.each<[string, string, boolean]>([
  ["recorded", `00-${TRACE}-${SPAN}-01`, true],
  ["not recorded", `00-${TRACE}-${SPAN}-00`, false],
  ["with flags nobody knows yet", `00-${TRACE}-${SPAN}-fe`, false],
  ["of a later version, which may have more members", `01-${TRACE}-${SPAN}-01-more`, true],
])("a traceparent that is %s is read", (_what, header, sampled) => {
  expect(readTraceparent(header)).toEqual({ traceId: TRACE, spanId: SPAN, sampled });
});

test.each([
  ["absent", null],
  ["empty", ""],
  ["of version 00 with more members", `00-${TRACE}-${SPAN}-01-more`],
  ["of the version that is none", `ff-${TRACE}-${SPAN}-01`],
  ["in capitals", `00-${TRACE.toUpperCase()}-${SPAN}-01`],
  ["of a trace that is none", `00-${"0".repeat(32)}-${SPAN}-01`],
  ["of a span that is none", `00-${TRACE}-${"0".repeat(16)}-01`],
  ["too short", `00-${TRACE.slice(1)}-${SPAN}-01`],
  ["two in one", `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
  ["very long", `01-${TRACE}-${SPAN}-01-${"a".repeat(1_000)}`],
])("a traceparent that is %s is none", (_what, header) => {
  expect(readTraceparent(header)).toBeNull();
});

test("a trace goes on where the client's is, with a span of its own, and is sent in the same form", () => {
  const random = (into: Uint8Array) => into.fill(7);
  const parent = readTraceparent(`00-${TRACE}-${SPAN}-01`);
  const trace = openTrace(parent, () => false, random);
  expect(trace).toEqual({ traceId: TRACE, spanId: "07".repeat(8), parentSpanId: SPAN, sampled: false });
  expect(formatTraceparent(trace)).toBe(`00-${TRACE}-${"07".repeat(8)}-00`);
});

test("ids of zeros, which mean none, are drawn again", () => {
  let drawn = 0;
  const random = (into: Uint8Array) => into.fill(drawn++ < 2 ? 0 : 1);
  expect(openTrace(null, () => true, random).traceId).toBe("01".repeat(16));
});
