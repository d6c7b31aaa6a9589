import { describe, expect, test } from "bun:test";
import type { SurfaceName } from "../../../src/catalog/catalog.ts";
import type { HostTarget } from "../../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../../src/surfaces/surfaces.ts";
import { refused } from "../../../src/units/errors/refusal.ts";

/** What both vendors have added since June 2026: each is known, passed, or refused by its name. */
const TARGET: HostTarget = {
  model: "m",
  publicModel: "test/m",
  stream: false,
  quirks: {},
  maxOutputTokens: null,
  defaultMaxOutputTokens: 100,
};
const SMALLEST = {
  "chat.completions": { messages: [{ role: "user", content: "Hi" }] },
  responses: { input: "Hi" },
  messages: { messages: [{ role: "user", content: "Hi" }], max_tokens: 50 },
} as const;

function sent(client: SurfaceName, host: SurfaceName, more: object, target = TARGET) {
  const body = Buffer.from(JSON.stringify({ model: "test/m", ...SMALLEST[client], ...more }));
  const request = SURFACES[client].readRequest(body);
  if (refused(request)) return { refusal: request, omitted: [] };
  const encoded = pairing(client, host).hostBody(request, target);
  if (refused(encoded)) return { refusal: encoded, omitted: [] };
  // biome-ignore lint/suspicious/noExplicitAny: looked into as the host gets it.
  const json: any = JSON.parse(Buffer.concat(encoded.parts).toString());
  return { refusal: null, json, omitted: encoded.omitted, version: encoded.version };
}

describe("refused by name", () => {
  const tool = (type: string) => ({ tools: [{ type, name: type }] });
  const inline = (definition: object) => ({
    messages: [
      { role: "user", content: "Hi" },
      { role: "system", content: [{ type: "tool_addition", tool: { type: "tool_definition", definition } }] },
    ],
  });
  const DEFINITION = "messages[1].content[0].tool.definition";
  const rows: [SurfaceName, SurfaceName, object, string][] = [
    // A full answer would be generated and charged.
    ["responses", "messages", { prompt_cache_options: { prewarm: true } }, "prompt_cache_options.prewarm"],
    [
      "responses",
      "chat.completions",
      { prompt_cache_options: { prewarm: true } },
      "prompt_cache_options.prewarm",
    ],
    [
      "chat.completions",
      "responses",
      { prompt_cache_options: { prewarm: true } },
      "prompt_cache_options.prewarm",
    ],
    ["responses", "messages", { generate: false }, "generate"],
    ["responses", "chat.completions", { generate: false }, "generate"],
    ["responses", "messages", { service_tier: "ultrafast" }, "service_tier"],
    ["responses", "responses", { service_tier: "fast" }, "service_tier"],
    ["responses", "messages", { input: [{ type: "configuration_update" }] }, "input[0].type"],
    ["responses", "messages", { input: [{ type: "program", id: "p", code: "1" }] }, "input[0].type"],
    ["responses", "chat.completions", { input: [{ type: "program_output", call_id: "p" }] }, "input[0].type"],
    ["responses", "messages", { tools: [{ type: "programmatic_tool_calling" }] }, "tools[0].type"],
    ["messages", "responses", tool("browser_toolset_20260801"), "tools[0].type"],
    ["messages", "chat.completions", tool("computer_toolset_20260801"), "tools[0].type"],
    ["messages", "messages", tool("web_search_20260318"), "tools[0].type"],
    ["messages", "messages", tool("advisor_20260301"), "tools[0].type"],
    [
      "messages",
      "messages",
      inline({ type: "web_search_20260318", name: "web_search" }),
      `${DEFINITION}.type`,
    ],
    ["messages", "responses", inline({ type: "bash_20250124", name: "bash" }), `${DEFINITION}.type`],
    ["messages", "messages", { billing_policy: { bill_to: "user_profile" } }, "billing_policy.bill_to"],
    ["messages", "responses", { billing_policy: { bill_to: "user_profile" } }, "billing_policy"],
    ["messages", "messages", { thread: { type: "continue", id: "t" } }, "thread"],
    ["messages", "responses", { compaction: { type: "auto" } }, "compaction"],
    ["messages", "responses", { speed: "fast" }, "speed"],
  ];
  test.each(rows)("from %s to %s: %j", (client, host, more, param) => {
    const { refusal } = sent(client, host, more);
    expect([refusal?.code, refusal?.details.param]).toEqual(["invalid_request", param]);
  });
});

describe("left out, and named", () => {
  const rows: [SurfaceName, SurfaceName, object, string[]][] = [
    [
      "responses",
      "messages",
      { prompt_cache_options: { comparison_response_id: "resp_1" } },
      ["prompt_cache_options.comparison_response_id"],
    ],
    ["messages", "responses", { diagnostics: { previous_message_id: "msg_1" } }, ["diagnostics"]],
    [
      "responses",
      "messages",
      {
        tools: [
          {
            type: "function",
            name: "f",
            parameters: {},
            async: true,
            allowed_callers: ["direct"],
            output_schema: {},
          },
        ],
      },
      ["tools[].hints"],
    ],
    [
      "messages",
      "chat.completions",
      {
        messages: [
          { role: "user", content: "Hi" },
          { role: "system", content: "Be brief.", output_config: { effort: "low" } },
        ],
      },
      ["messages[].output_config"],
    ],
  ];
  test.each(rows)("from %s to %s: %j", (client, host, more, expected) => {
    const { refusal, omitted } = sent(client, host, more);
    expect([refusal, omitted]).toEqual([null, expected]);
  });
  test.each([{ generate: true }, { prompt_cache_options: { prewarm: false } }])(
    "%j asks for nothing",
    (more) => {
      expect(sent("responses", "messages", more).refusal).toBeNull();
    },
  );
});

describe("passed to hosts of the client's own language, as it came", () => {
  const rows: [SurfaceName, object][] = [
    ["responses", { prompt_cache_options: { prewarm: true } }],
    ["responses", { generate: false }],
    ["responses", { input: [{ type: "configuration_update" }] }],
    ["messages", { diagnostics: { previous_message_id: "msg_1" } }],
    ["messages", { billing_policy: { bill_to: "self" } }],
    [
      "messages",
      {
        messages: [
          { role: "user", content: "Hi" },
          {
            role: "system",
            clear_at: "next_user_message",
            content: [{ type: "tool_removal", tool: { type: "tool_reference", name: "a" } }],
          },
        ],
      },
    ],
  ];
  test.each(rows)("%s: %j", (language, more) => {
    expect(sent(language, language, more).json).toMatchObject(more);
  });
});

describe("tools that change in the middle of a conversation of Messages", () => {
  const toolNamed = (name: string) => ({ name, input_schema: { type: "object" } });
  const change = (type: string, tool: object) => ({ role: "system", content: [{ type, tool }] });
  const reference = (name: string) => ({ type: "tool_reference", name });
  const offered = (...changes: object[]) => {
    const messages = [{ role: "user", content: "Hi" }, ...changes];
    const { refusal, json } = sent("messages", "responses", {
      tools: [toolNamed("a"), toolNamed("b")],
      messages,
    });
    return refusal?.details.param ?? (json.tools ?? []).map(({ name }: { name: string }) => name);
  };
  const rows: [string, object[], unknown][] = [
    ["one is removed", [change("tool_removal", reference("a"))], ["b"]],
    [
      "one is removed and offered again",
      [change("tool_removal", reference("a")), change("tool_addition", reference("a"))],
      ["a", "b"],
    ],
    [
      "one is defined",
      [change("tool_addition", { type: "tool_definition", definition: toolNamed("c") })],
      ["a", "b", "c"],
    ],
    ["all are removed", [change("tool_removal", reference("a")), change("tool_removal", reference("b"))], []],
    [
      "one that nobody defined",
      [change("tool_addition", reference("x"))],
      "messages[1].content[0].tool.name",
    ],
    [
      "one of an MCP server",
      [change("tool_addition", { type: "mcp_tool_reference", server_name: "s", name: "n" })],
      "messages[1].content[0].tool.type",
    ],
  ];
  test.each(rows)("hosts of other languages are offered those of the end: %s", (_, changes, expected) => {
    expect(offered(...changes)).toEqual(expected);
  });
  test("instructions for one turn of the user's are not sent after it", () => {
    const once = (content: string) => ({ role: "system", clear_at: "next_user_message", content });
    const messages = [
      { role: "user", content: "One?" },
      once("Now it is noon."),
      { role: "assistant", content: "Yes." },
      { role: "user", content: "Two?" },
      once("Now it is one."),
    ];
    const { json, omitted } = sent("messages", "chat.completions", { messages });
    expect([JSON.stringify(json).match(/Now it is \w+/g), omitted]).toEqual([["Now it is one"], []]);
  });
});

describe("the version of Messages that a request is written in", () => {
  const rows: [SurfaceName, object, string | undefined][] = [
    ["chat.completions", {}, undefined],
    ["chat.completions", { temperature: 0.5 }, "2023-06-01"],
    ["responses", { top_p: 0.5 }, "2023-06-01"],
    ["messages", { top_k: 5 }, "2023-06-01"],
    ["messages", {}, undefined],
  ];
  test.each(rows)(
    "%s %j: the older one with sampling, which the newest refuses",
    (client, more, expected) => {
      expect(sent(client, "messages", more).version).toBe(expected);
    },
  );
  test("a model that chooses its temperature itself is asked as of the newest", () => {
    const target = { ...TARGET, quirks: { noSampling: true } };
    expect(sent("chat.completions", "messages", { temperature: 0.5 }, target).version).toBeUndefined();
  });
});
