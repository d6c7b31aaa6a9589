import { describe, expect, test } from "bun:test";
import type { SurfaceName } from "../../../src/catalog/catalog.ts";
import type { HostTarget } from "../../../src/surfaces/surface.ts";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import { type Refusal, refused } from "../../../src/units/errors/refusal.ts";
import { chatText, messagesText, sseText } from "../../fakes/transcripts.ts";
import { bodyOf, given, inPieces, readRequest } from "../harness.ts";
import { violations } from "../wire-schema.ts";

/** What Codex puts into `input` for OpenAI's newest models, on hosts of every language. */
const TARGET: HostTarget = {
  model: "host-model",
  publicModel: "test/model",
  stream: false,
  quirks: {},
  maxOutputTokens: null,
  defaultMaxOutputTokens: 4_096,
};
const METADATA = { publicModel: "test/model", atS: 1_763_000_000 };
const ELSEWHERE: SurfaceName[] = ["chat.completions", "messages"];

const plainTool = { type: "function", name: "look", parameters: { type: "object" }, strict: false };
const TOOLS = [
  { type: "namespace", name: "functions", description: "Local", tools: [{ type: "custom", name: "exec" }] },
  plainTool,
  { type: "web_search" },
  { type: "tool_search", execution: "client" },
];
const added = (tools: object[]) => ({ type: "additional_tools", role: "developer", id: "at_1", tools });
const user = (text: string) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] });

const hostBody = (host: SurfaceName, body: object, target = TARGET) =>
  pairing("responses", host).hostBody(readRequest("responses", { model: "test/model", ...body }), target);

function sent(host: SurfaceName, body: object, target = TARGET) {
  const written = hostBody(host, body, target);
  if (refused(written)) throw new Error(written.message);
  return { json: JSON.parse(Buffer.concat(written.parts).toString()), omitted: written.omitted };
}

const namesOf = (tools: { name?: string; function?: { name: string } }[]) =>
  tools.map(({ name, function: inner }) => name ?? inner?.name);

const called = (host: SurfaceName): object =>
  host === "messages"
    ? {
        id: "msg_1",
        type: "message",
        role: "assistant",
        content: [
          { type: "tool_use", id: "call_1", name: "functions__exec", input: { input: "ls" } },
          { type: "tool_use", id: "call_2", name: "look", input: {} },
        ],
        stop_reason: "tool_use",
        usage: { input_tokens: 1, output_tokens: 1 },
      }
    : {
        id: "chatcmpl-1",
        object: "chat.completion",
        created: 1,
        model: "host-model",
        choices: [
          {
            index: 0,
            finish_reason: "tool_calls",
            message: {
              role: "assistant",
              content: null,
              tool_calls: [
                {
                  id: "call_1",
                  type: "function",
                  function: { name: "functions__exec", arguments: '{"input":"ls"}' },
                },
                { id: "call_2", type: "function", function: { name: "look", arguments: "{}" } },
              ],
            },
          },
        ],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      };

function replied(host: SurfaceName, body: object, answer: object) {
  const request = readRequest("responses", { model: "test/model", ...body });
  const reply = pairing("responses", host).readReply(Buffer.from(JSON.stringify(answer)), request, METADATA);
  const json = JSON.parse(bodyOf(reply));
  expect(violations("response", json)).toEqual([]);
  return json;
}

describe.each(ELSEWHERE)("tools that an item of the input adds, on a host of %s", (host) => {
  const body = { input: [added(TOOLS), user("Hi")], store: false };

  test("are offered like any others, without what only OpenAI's hosts do", () => {
    const { json, omitted } = sent(host, body);
    expect(namesOf(json.tools)).toEqual(["functions__exec", "look"]);
    expect([...omitted].sort()).toEqual(["namespace.description", "tool_search", "tools[].web_search"]);
    expect(JSON.stringify(json)).not.toContain("additional_tools");
  });

  test("are called by the names and in the form in which they were offered", () => {
    expect(replied(host, body, called(host)).output).toMatchObject([
      { type: "custom_tool_call", namespace: "functions", name: "exec", input: "ls", call_id: "call_1" },
      { type: "function_call", name: "look", arguments: "{}", call_id: "call_2" },
    ]);
  });

  test("keep their names in the calls of earlier turns, and in what a search found", () => {
    const loaded = { ...plainTool, name: "find" };
    const { json, omitted } = sent(host, {
      input: [
        added(TOOLS),
        user("Hi"),
        { type: "custom_tool_call", namespace: "functions", name: "exec", call_id: "call_1", input: "ls" },
        { type: "custom_tool_call_output", call_id: "call_1", output: "a.txt" },
        { type: "tool_search_call", call_id: "call_3", execution: "client", arguments: { query: "find" } },
        {
          type: "tool_search_output",
          call_id: "call_3",
          execution: "client",
          tools: [plainTool, { type: "namespace", name: "mcp", tools: [loaded] }],
        },
        user("Go on"),
      ],
    });
    expect(namesOf(json.tools)).toEqual(["functions__exec", "look", "mcp__find"]);
    expect(JSON.stringify(json.messages)).toContain('"functions__exec"');
    expect(omitted).toContain("tool_search");
  });

  test("are refused by their place where only OpenAI's hosts have them", () => {
    const refusal = hostBody(host, {
      input: [added([{ type: "file_search", vector_store_ids: [] }]), user("Hi")],
    });
    expect((refusal as Refusal).details.param).toBe("input[0].tools[0].type");
  });
});

describe("tools that an item of the input adds, on a host of responses", () => {
  test("reach it as they came, but for a search that costs extra", () => {
    const { json, omitted } = sent("responses", { input: [added(TOOLS), user("Hi")] });
    expect(json.input).toEqual([added(TOOLS.filter(({ type }) => type !== "web_search")), user("Hi")]);
    expect(omitted).toEqual(["tools[].web_search"]);
    const paid = { ...TARGET, quirks: { ownTools: true } };
    expect(sent("responses", { input: [added(TOOLS), user("Hi")] }, paid).json.input[0]).toEqual(
      added(TOOLS),
    );
  });

  test.each([
    ["plainly", [{ type: "code_interpreter", container: { type: "auto" } }], "input[1].tools[0].type"],
    [
      "in a namespace",
      [plainTool, { type: "namespace", name: "n", tools: [{ type: "file_search" }] }],
      "input[1].tools[1].type",
    ],
  ])("are refused where they cost extra and are given %s", (_how, tools, param) => {
    const body = hostBody("responses", { input: [user("Hi"), added(tools)] });
    expect((body as Refusal).details.param).toBe(param);
  });

  test("count what the host may search for itself", () => {
    const request = { model: "test/model", input: [added([{ type: "web_search" }]), user("Hi")] };
    expect(readRequest("responses", request).promptUnseen).toBe(true);
  });
});

const SHORTEN = { input: [added([plainTool]), user("Hi"), { type: "compaction_trigger" }], store: false };

describe.each(ELSEWHERE)("a conversation that is to be shortened, on a host of %s", (host) => {
  const { events, whole } = host === "messages" ? messagesText() : chatText();

  test("is summarized: the host is asked for it in words, and may not call a tool", () => {
    const { json } = sent(host, { ...SHORTEN, text: { format: { type: "json_object" } } });
    expect(namesOf(json.tools)).toEqual(["look"]);
    expect(json.tool_choice).toEqual(host === "messages" ? { type: "none" } : "none");
    expect(JSON.stringify(json.messages.at(-1))).toContain("Summarize this conversation");
    expect(json.response_format).toBeUndefined();
  });

  test("comes back as one item of type compaction, whole or streamed", () => {
    const { output } = replied(host, SHORTEN, whole as object);
    expect(output.map(({ type }: { type: string }) => type)).toEqual(["compaction"]);
    expect(output[0].encrypted_content).toContain("Hello");

    const request = readRequest("responses", { model: "test/model", stream: true, ...SHORTEN });
    const stream = pairing("responses", host).openStream(request, METADATA);
    const text = given(stream, inPieces(Buffer.from(sseText(events)), 7));
    const sentEvents = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!));
    for (const event of sentEvents) expect(violations("responseEvent", event)).toEqual([]);
    expect(sentEvents.map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(sentEvents.at(-1).response.output).toEqual([sentEvents[3].item]);
    expect(sentEvents[3].item.encrypted_content).toBe(output[0].encrypted_content);
    expect(stream.countedTokens).toBeGreaterThan(0);
  });

  test("goes on from that item on any host, and from OpenAI's on OpenAI's only", () => {
    const [item] = replied(host, SHORTEN, whole as object).output;
    for (const next of ["chat.completions", "messages", "responses"] as const) {
      const { json } = sent(next, { input: [item, user("Go on")] });
      const turns = JSON.stringify(next === "responses" ? json.input : json.messages);
      expect(turns).toMatch(/Summary of the conversation so far.*Hello/);
      expect(turns).not.toContain("compaction");
      expect(turns).not.toContain("gwsummary");
    }
    const foreign = { type: "compaction", id: "cmp_1", encrypted_content: "gAAAAA" };
    const refusal = hostBody(host, { input: [foreign, user("Go on")] }) as Refusal;
    expect(refusal.details.param).toBe("input[0].encrypted_content");
    expect(sent("responses", { input: [foreign, user("Go on")] }).json.input[0]).toEqual(foreign);
  });
});

test("a conversation that is to be shortened reaches hosts of responses as it came", () => {
  expect(sent("responses", SHORTEN).json.input).toEqual(SHORTEN.input);
});

test("what hosts are asked next to the prompt is held like it", () => {
  const body = { model: "test/model", input: [{ type: "compaction_trigger" }] };
  const { promptBound } = readRequest("responses", body);
  const content = sent("messages", { input: body.input }).json.messages[0].content;
  expect(promptBound).toBeGreaterThan(JSON.stringify(content).length);
});

test("searches and programs that a host of OpenAI's ran earlier are left out and named", () => {
  const search = { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search" } };
  for (const host of ELSEWHERE) {
    const { json, omitted } = sent(host, { input: [user("Hi"), search, user("Go on")] });
    expect(omitted).toContain("input[].own_calls");
    expect(JSON.stringify(json)).not.toContain("web_search_call");
  }
});
