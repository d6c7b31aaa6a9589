import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import { omitted } from "../harness.ts";

/**
 * Members inside messages, items and parts that the gateway does not know: left out of a translation, and
 * named.
 */
type Json = Record<string, unknown>;

const PIXEL = "data:image/png;base64,iVBORw0KGgo=";
const PDF = "data:application/pdf;base64,JVBERi0=";
const request = (...content: Json[]) => ({ messages: [{ role: "user", content }] });
const chatCall = { id: "1", type: "function", function: { name: "f", arguments: "{}" } };
const chatAnswer = (more: Json) => ({
  messages: [
    { role: "assistant", content: null, ...more },
    { role: "tool", tool_call_id: "1", content: "2" },
  ],
});
const call = { type: "tool_use", id: "1", name: "f", input: {} };
const called = (more: Json, result: Json = {}) => ({
  messages: [
    { role: "assistant", content: [{ ...call, ...more }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "1", content: "2", ...result }] },
  ],
});
const FUNCTION = { name: "f", parameters: { type: "object", properties: { x: { type: "string" } } } };

const rows: [client: SurfaceName, where: string, more: Json, name: string][] = [
  ["chat.completions", "a text", request({ type: "text", text: "Hi", x: 1 }), "text.x"],
  [
    "chat.completions",
    "a picture",
    request({ type: "image_url", image_url: { url: PIXEL }, x: 1 }),
    "image_url.x",
  ],
  [
    "chat.completions",
    "a picture's address",
    request({ type: "image_url", image_url: { url: PIXEL, x: 1 } }),
    "image_url.image_url.x",
  ],
  ["chat.completions", "a file", request({ type: "file", file: { file_data: PDF }, x: 1 }), "file.x"],
  [
    "chat.completions",
    "a file's data",
    request({ type: "file", file: { file_data: PDF, x: 1 } }),
    "file.file.x",
  ],
  ["chat.completions", "a message", { messages: [{ role: "user", content: "Hi", x: 1 }] }, "messages[].x"],
  [
    "chat.completions",
    "a user's message, where only answers have it",
    { messages: [{ role: "user", content: "Hi", cache_control: { type: "ephemeral" } }] },
    "messages[].cache_control",
  ],
  [
    "chat.completions",
    "a system's text",
    {
      messages: [
        { role: "system", content: [{ type: "text", text: "Be", x: 1 }] },
        { role: "user", content: "Hi" },
      ],
    },
    "text.x",
  ],
  [
    "chat.completions",
    "what was answered",
    chatAnswer({ content: [{ type: "refusal", refusal: "No", x: 1 }], tool_calls: [chatCall] }),
    "refusal.x",
  ],
  [
    "chat.completions",
    "a call",
    chatAnswer({ tool_calls: [{ ...chatCall, extra_content: { google: 1 } }] }),
    "tool_calls[].extra_content",
  ],
  [
    "chat.completions",
    "a call's function",
    chatAnswer({ tool_calls: [{ ...chatCall, function: { ...chatCall.function, x: 1 } }] }),
    "tool_calls[].function.x",
  ],
  ["chat.completions", "a tool", { tools: [{ type: "function", function: FUNCTION, x: 1 }] }, "tools[].x"],
  [
    "chat.completions",
    "a tool's function",
    { tools: [{ type: "function", function: { ...FUNCTION, x: 1 } }] },
    "tools[].function.x",
  ],
  [
    "responses",
    "a message",
    { input: [{ role: "user", content: "Hi", phase: "commentary" }] },
    "message.phase",
  ],
  [
    "responses",
    "a text",
    { input: [{ role: "user", content: [{ type: "input_text", text: "Hi", x: 1 }] }] },
    "input_text.x",
  ],
  [
    "responses",
    "an answer's text",
    {
      input: [
        {
          role: "assistant",
          content: [{ type: "output_text", text: "Hi", annotations: [{ type: "url_citation" }] }],
        },
      ],
    },
    "output_text.annotations",
  ],
  [
    "responses",
    "a picture",
    { input: [{ role: "user", content: [{ type: "input_image", image_url: PIXEL, x: 1 }] }] },
    "input_image.x",
  ],
  [
    "responses",
    "a file",
    { input: [{ role: "user", content: [{ type: "input_file", file_data: PDF, x: 1 }] }] },
    "input_file.x",
  ],
  [
    "responses",
    "a call",
    {
      input: [
        { type: "function_call", call_id: "1", name: "f", arguments: "{}", x: 1 },
        { type: "function_call_output", call_id: "1", output: "2" },
      ],
    },
    "function_call.x",
  ],
  [
    "responses",
    "a result",
    {
      input: [
        { type: "function_call", call_id: "1", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "1", output: "2", x: 1 },
      ],
    },
    "function_call_output.x",
  ],
  ["responses", "a tool", { tools: [{ type: "function", ...FUNCTION, x: 1 }] }, "tools[].x"],
  [
    "responses",
    "a namespace",
    {
      tools: [
        { type: "namespace", name: "n", description: "Ours", tools: [{ type: "function", ...FUNCTION }] },
      ],
    },
    "namespace.description",
  ],
  ["messages", "a message", { messages: [{ role: "user", content: "Hi", x: 1 }] }, "messages[].x"],
  ["messages", "a text", request({ type: "text", text: "Hi", x: 1 }), "text.x"],
  ["messages", "a system's text", { system: [{ type: "text", text: "Be", x: 1 }] }, "text.x"],
  [
    "messages",
    "a picture",
    request({ type: "image", source: { type: "url", url: "https://a.test/b.png" }, x: 1 }),
    "image.x",
  ],
  [
    "messages",
    "a picture's source",
    request({ type: "image", source: { type: "url", url: "https://a.test/b.png", x: 1 } }),
    "source.x",
  ],
  [
    "messages",
    "an answer's text",
    {
      messages: [
        { role: "assistant", content: [{ type: "text", text: "Hi", citations: [{ cited_text: "x" }] }] },
        { role: "user", content: "So?" },
      ],
    },
    "text.citations",
  ],
  ["messages", "a call", called({ caller: { type: "direct" } }), "tool_use.caller"],
  [
    "messages",
    "a document of blocks, which has no name elsewhere",
    request({ type: "document", title: "t", source: { type: "content", content: "Hi" } }),
    "document.title",
  ],
  ["messages", "a result", called({}, { x: 1 }), "tool_result.x"],
  ["messages", "a result's text", called({}, { content: [{ type: "text", text: "2", x: 1 }] }), "text.x"],
  ["messages", "a tool", { tools: [{ name: "f", input_schema: FUNCTION.parameters, x: 1 }] }, "tools[].x"],
];

describe("a member that the gateway does not know", () => {
  for (const [client, where, more, name] of rows) {
    for (const host of SURFACE_NAMES.filter((one) => one !== client)) {
      test(`inside ${where} of ${client} is named when it is left out for ${host}`, () => {
        expect(omitted(client, host, more)).toEqual([name]);
      });
    }
  }

  test("that says nothing is not worth a word, nor are the labels of an answer that is sent back", () => {
    const nothing = { type: "text", text: "Hi", a: null, b: [], c: {}, d: "", e: false };
    expect(omitted("messages", "responses", request(nothing))).toEqual([]);
    const answered = [
      {
        type: "message",
        id: "msg_1",
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", text: "Hi", annotations: [], logprobs: [] }],
      },
    ];
    expect(
      omitted("responses", "messages", { input: [...answered, { role: "user", content: "So?" }] }),
    ).toEqual([]);
  });

  test("of an item that is left out as a whole is not named, however many there are", () => {
    const members = Object.fromEntries(Array.from({ length: 200_000 }, (_, at) => [`x${at}`, 1]));
    const input = [
      { ...members, type: "web_search_call" },
      { role: "user", content: "So?" },
    ];
    expect(omitted("responses", "messages", { input })).toEqual(["input[].own_calls"]);
  });

  test("inside the arguments and schemas of tools is the tools' own", () => {
    const more = { ...called({ input: { x: { y: 1 } } }), tools: [{ name: "f", input_schema: { x: 1 } }] };
    expect(omitted("messages", "chat.completions", more)).toEqual([]);
  });

  test("cannot write the header by its name, nor fill it by their number", () => {
    const text = { type: "text", text: "Hi" };
    expect(omitted("messages", "responses", request({ ...text, "x\r\nset-cookie: a=b": 1 }))).toEqual([
      "text.*",
    ]);
    expect(omitted("messages", "responses", request({ ...text, ["x".repeat(65)]: 1, ü: 1 }))).toEqual([
      "text.*",
    ]);
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`x${at}`, 1]));
    const named = omitted("messages", "responses", request({ ...text, ...many }));
    expect(named.slice(0, 2)).toEqual(["text.x0", "text.x1"]);
    expect(named).toHaveLength(33);
    expect(named.at(-1)).toBe("text.*");
  });

  test.each(SURFACE_NAMES)("%s: a kind of part that is no text is refused, whatever it is", (client) => {
    const part = { type: { toString: 1 } };
    const more = client === "responses" ? { input: [{ role: "user", content: [part] }] } : request(part);
    expect(() => omitted(client, client === "messages" ? "responses" : "messages", more)).toThrow(".type`");
  });
});

test.each<[SurfaceName, SurfaceName, Record<string, unknown>, string]>([
  ["chat.completions", "messages", { messages: [{ role: "user", content: 5 }] }, "messages[0].content"],
  ["messages", "responses", { system: 5 }, "system"],
  ["responses", "messages", { input: [{ role: "user", content: {} }] }, "input[0].content"],
])(
  "%s for %s: what may be a text or parts, and is neither, is refused with both",
  (...[client, host, more, name]) => {
    expect(() => omitted(client, host, more)).toThrow(`\`${name}\` must be a string or an array`);
  },
);
