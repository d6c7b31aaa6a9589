import { describe, expect, test } from "bun:test";
import { withinLimits } from "../../../src/surfaces/messages/schema-limits.ts";

/** What OpenAI's clients write into a schema, and what Anthropic is sent. */
const closed = (properties: object) => ({ type: "object", properties, additionalProperties: false });

describe("a schema for Anthropic", () => {
  const text = { type: "string" };
  test.each([
    [
      "a number's bounds",
      { type: "number", minimum: 0, maximum: 10 },
      { type: "number", description: "(minimum: 0, maximum: 10)" },
    ],
    [
      "a text's length",
      { ...text, minLength: 1, description: "A name." },
      { ...text, description: "A name. (minLength: 1)" },
    ],
    [
      "a list's length",
      { type: "array", items: text, minItems: 3 },
      { type: "array", items: text, description: "(minItems: 3)" },
    ],
    [
      "a format that no model is held to",
      { ...text, format: "uri-reference" },
      { ...text, description: '(format: "uri-reference")' },
    ],
  ])("has %s in words", (_what, given, a) => {
    expect(withinLimits(closed({ a: given }))).toEqual({ schema: closed({ a }), isDescribed: true });
  });

  test.each([
    ["a format that it knows", { type: "string", format: "date" }],
    ["a list that is not empty", { type: "array", items: { type: "string" }, minItems: 1 }],
    ["a pattern, a default and an enumeration", { type: "string", pattern: "^a", default: "a", enum: ["a"] }],
    ["a map, which the host has to judge", { type: "object", additionalProperties: { type: "string" } }],
    [
      "properties that are named as keywords are",
      closed({ minimum: { type: "number" }, oneOf: { type: "string" } }),
    ],
    ["values that look like schemas", { const: { minimum: 3 } }],
  ])("keeps %s", (_what, a) => {
    expect(withinLimits(closed({ a }))).toEqual({ schema: closed({ a }), isDescribed: false });
  });

  test("closes each object that is not said to be open, at any depth", () => {
    const open = (properties: object) => ({ type: "object", properties });
    const schema = {
      ...open({ a: { anyOf: [open({}), { type: "null" }] }, b: { type: "array", items: open({}) } }),
      $defs: { c: open({}) },
    };
    const expected = {
      ...closed({ a: { anyOf: [closed({}), { type: "null" }] }, b: { type: "array", items: closed({}) } }),
      $defs: { c: closed({}) },
    };
    expect(withinLimits(schema)).toEqual({ schema: expected, isDescribed: false });
  });

  test("offers alternatives in the way it knows, without the marks of other readers", () => {
    const schema = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      oneOf: [{ type: "string" }],
      discriminator: { propertyName: "kind" },
    };
    expect(withinLimits(schema)).toEqual({ schema: { anyOf: [{ type: "string" }] }, isDescribed: false });
  });
});
