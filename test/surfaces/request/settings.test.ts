import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import { omitted } from "../harness.ts";

/**
 * Members of settings (how to think, choose, format) that the gateway does not know: left out of a
 * translation, and named.
 */
type Json = Record<string, unknown>;

const TOOLS: Record<SurfaceName, Json> = {
  "chat.completions": { tools: [{ type: "function", function: { name: "f" } }] },
  responses: { tools: [{ type: "function", name: "f" }] },
  messages: { tools: [{ name: "f", input_schema: { type: "object" } }] },
};
const schema = { type: "object", properties: { x: { type: "string" } } };

const rows: [client: SurfaceName, more: Json, name: string][] = [
  ["chat.completions", { reasoning: { effort: "low", x: 1 } }, "reasoning.x"],
  ["chat.completions", { stream_options: { include_usage: true, x: 1 } }, "stream_options.x"],
  ["chat.completions", { tool_choice: { type: "function", function: { name: "f" }, x: 1 } }, "tool_choice.x"],
  [
    "chat.completions",
    { tool_choice: { type: "function", function: { name: "f", x: 1 } } },
    "tool_choice.function.x",
  ],
  [
    "chat.completions",
    {
      tool_choice: {
        type: "allowed_tools",
        allowed_tools: { mode: "auto", tools: [{ type: "function", function: { name: "f" } }], x: 1 },
      },
    },
    "tool_choice.allowed_tools.x",
  ],
  ["chat.completions", { response_format: { type: "text", schema } }, "response_format.schema"],
  [
    "chat.completions",
    { response_format: { type: "json_schema", json_schema: { schema, x: 1 } } },
    "response_format.json_schema.x",
  ],
  ["responses", { reasoning: { effort: "low", x: 1 } }, "reasoning.x"],
  ["responses", { stream_options: { include_obfuscation: true } }, "stream_options.include_obfuscation"],
  ["responses", { text: { x: 1 } }, "text.x"],
  ["responses", { text: { format: { type: "json_schema", schema, x: 1 } } }, "text.format.x"],
  ["responses", { tool_choice: { type: "function", name: "f", x: 1 } }, "tool_choice.x"],
  ["messages", { thinking: { type: "adaptive", display: "omitted", x: 1 } }, "thinking.x"],
  ["messages", { output_config: { effort: "low", x: 1 } }, "output_config.x"],
  [
    "messages",
    { output_config: { format: { type: "json_schema", schema, x: 1 } } },
    "output_config.format.x",
  ],
  ["messages", { output_format: { type: "json_schema", schema, x: 1 } }, "output_format.x"],
  ["messages", { tool_choice: { type: "tool", name: "f", x: 1 } }, "tool_choice.x"],
  ["messages", { metadata: { user_id: "u", x: 1 } }, "metadata.x"],
];

/** Everything that is read, in the richest form of each language. */
const known: [client: SurfaceName, host: SurfaceName, more: Json][] = [
  [
    "chat.completions",
    "responses",
    {
      reasoning: { effort: "high", enabled: true, exclude: true },
      stream_options: { include_usage: true },
      tool_choice: { type: "custom", custom: { name: "f" } },
      response_format: {
        type: "json_schema",
        json_schema: { name: "n", description: "d", strict: true, schema: { type: "object", x: { y: 1 } } },
      },
      metadata: { anything: "goes" },
    },
  ],
  [
    "responses",
    "chat.completions",
    {
      reasoning: { effort: "high", mode: "standard", context: "auto" },
      text: {
        verbosity: "low",
        format: { type: "json_schema", name: "n", description: "d", strict: true, schema },
      },
      tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "f" }] },
      metadata: { anything: "goes" },
    },
  ],
  [
    "messages",
    "responses",
    {
      thinking: { type: "adaptive", display: "summarized" },
      output_config: { effort: "high", format: { type: "json_schema", schema } },
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
      metadata: { user_id: "u" },
    },
  ],
];

describe("a setting that the gateway does not know", () => {
  for (const [client, more, name] of rows) {
    for (const host of SURFACE_NAMES.filter((one) => one !== client)) {
      test(`of ${client}, ${name}, is named when it is left out for ${host}`, () => {
        expect(omitted(client, host, { ...TOOLS[client], ...more })).toContain(name);
      });
    }
  }

  test("that says nothing is not worth a word", () => {
    const nothing = { a: null, b: [], c: {}, d: "", e: false };
    expect(omitted("messages", "responses", { output_config: { effort: "low", ...nothing } })).toEqual([]);
  });

  test("cannot write the header by its name, nor fill it by their number", () => {
    const bad = { "x\r\nset-cookie: a=b": 1, ["x".repeat(65)]: 1 };
    expect(omitted("responses", "messages", { reasoning: bad })).toEqual(["reasoning.*"]);
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`x${at}`, 1]));
    expect(omitted("responses", "messages", { text: many })).toHaveLength(33);
  });

  test.each(SURFACE_NAMES)("%s: is the host's own where it speaks the client's language", (client) => {
    const more = client === "messages" ? { thinking: { type: "adaptive", x: 1 } } : { reasoning: { x: 1 } };
    expect(omitted(client, client, more)).toEqual([]);
  });
});

test.each(known)("every setting of %s that is read is known, and sent to %s", (client, host, more) => {
  expect(omitted(client, host, { ...TOOLS[client], ...more })).toEqual([]);
});
