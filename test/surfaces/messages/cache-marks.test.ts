import { describe, expect, test } from "bun:test";
import { withCacheMarks } from "../../../src/surfaces/request/own-marks.ts";

const MARK = { cache_control: { type: "ephemeral" } };
const text = (words: string, mark: object = {}) => ({ type: "text", text: words, ...mark });
const user = (content: unknown) => ({ role: "user", content });
const assistant = (content: unknown) => ({ role: "assistant", content });
const marked = (body: object) =>
  JSON.parse(Buffer.from(withCacheMarks(Buffer.from(JSON.stringify(body)))).toString());

describe("what is marked for the host's cache", () => {
  const table: [string, object, object][] = [
    ["a text alone", { messages: [user("a")] }, { messages: [user([text("a", MARK)])] }],
    [
      "tools, instructions, and the last two turns of the user",
      {
        tools: [{ name: "t" }, { name: "u", input_schema: { type: "object", properties: {} } }],
        system: "Be brief.",
        messages: [user("a"), assistant("b"), user("c"), assistant("d"), user([text("e"), text("f")])],
      },
      {
        tools: [{ name: "t" }, { name: "u", input_schema: { type: "object", properties: {} }, ...MARK }],
        system: [text("Be brief.", MARK)],
        messages: [
          user("a"),
          assistant("b"),
          user([text("c", MARK)]),
          assistant("d"),
          user([text("e"), text("f", MARK)]),
        ],
      },
    ],
    [
      "instructions in blocks, whose last one is empty",
      { messages: [user("a")], system: [text("x"), text("")] },
      { messages: [user([text("a", MARK)])], system: [text("x", MARK), text("")] },
    ],
    [
      "results of tools, and pictures",
      {
        messages: [
          user([{ type: "image", source: { type: "url", url: "u" } }]),
          assistant([{ type: "tool_use", id: "1", name: "t", input: {} }]),
          user([{ type: "tool_result", tool_use_id: "1", content: [text("x")] }]),
        ],
      },
      {
        messages: [
          user([{ type: "image", source: { type: "url", url: "u" }, ...MARK }]),
          assistant([{ type: "tool_use", id: "1", name: "t", input: {} }]),
          user([{ type: "tool_result", tool_use_id: "1", content: [text("x")], ...MARK }]),
        ],
      },
    ],
    [
      "the beginning of an answer, behind its thoughts",
      { messages: [user("a"), assistant([{ type: "thinking", thinking: "h", signature: "s" }, text("b")])] },
      {
        messages: [
          user([text("a", MARK)]),
          assistant([{ type: "thinking", thinking: "h", signature: "s" }, text("b", MARK)]),
        ],
      },
    ],
    [
      "no tool that is loaded later",
      { tools: [{ name: "a" }, { name: "b", defer_loading: true }], messages: [user("a")] },
      {
        tools: [
          { name: "a", ...MARK },
          { name: "b", defer_loading: true },
        ],
        messages: [user([text("a", MARK)])],
      },
    ],
    [
      "a role that stands behind the content",
      { messages: [{ content: "a", role: "user" }, assistant("b"), { content: "c", role: "user" }] },
      {
        messages: [
          { content: [text("a", MARK)], role: "user" },
          assistant("b"),
          { content: [text("c", MARK)], role: "user" },
        ],
      },
    ],
  ];
  test.each(table)("%s", (_, body, expected) => expect(marked(body)).toEqual(expected));

  const untouched: [string, object][] = [
    ["a client's own mark on a block", { messages: [user([text("a", MARK)]), assistant("b"), user("c")] }],
    ["a client's own mark on the whole", { ...MARK, messages: [user("a")] }],
    ["a client's own mark on a tool", { tools: [{ name: "t", ...MARK }], messages: [user("a")] }],
    ["nothing that takes a mark", { messages: [user(""), assistant([{ type: "thinking", thinking: "h" }])] }],
    ["blocks of unknown kinds", { messages: [user([{ type: "hologram", text: "x" }])] }],
    ["no lists where lists belong", { tools: 1, system: null, messages: { 0: user("a") } }],
    ["no messages where messages belong", { tools: ["t"], system: [1], messages: ["a", null, user(7)] }],
  ];
  test.each(untouched)("not touched: %s", (_, body) => expect(marked(body)).toEqual(body));

  test("everything else stays byte for byte, numbers and spaces too", () => {
    const body =
      ' { "seed" : 12345678901234567890 , "messages" : [ { "role" : "user" , "content" : "a\\u0062" } ] } ';
    expect(Buffer.from(withCacheMarks(Buffer.from(body))).toString()).toBe(
      body.replace('"a\\u0062"', '[{"type":"text","text":"a\\u0062","cache_control":{"type":"ephemeral"}}]'),
    );
  });

  test("what is no JSON stays as it is", () => {
    for (const body of ["", "{", '{"messages":[', '{"messages":[{"role":"user","content":"a"}]', "[]"])
      expect(Buffer.from(withCacheMarks(Buffer.from(body))).toString()).toBe(body);
  });
});
