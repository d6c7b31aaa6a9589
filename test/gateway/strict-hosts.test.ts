import { afterEach, describe, expect, test } from "bun:test";
import { PRESETS, routeQuirks } from "../../src/config/provider-presets.ts";
import { type QuirkRow, quirkRow } from "../../src/config/quirks.ts";
import { json } from "../fakes/behaviours.ts";
import { type Behaviour, type FakeHost, type FakeRequest, startFakeHost } from "../fakes/host.ts";
import { OPENAI_CHAT } from "../fakes/hosts/openai-chat.ts";
import { OPENAI_RESPONSES } from "../fakes/hosts/openai-responses.ts";
import { answerOf, STRICT_CHAT, type StrictChat } from "../fakes/strict-chat.ts";
import { type OpenGateway, open } from "./open.ts";

/**
 * Clients send what OpenAI and Anthropic know, and send back what they were answered, by whichever host. Each
 * host here refuses what its provider refuses: with the quirks of its preset, a task with a tool comes to its
 * end all the same.
 */
// biome-ignore lint/suspicious/noExplicitAny: answers are looked into.
type Loose = Record<string, any>;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** The models of which what their fakes know is true. */
const MODELS: Record<string, string> = {
  openai: "gpt-4o",
  xai: "grok-4-latest",
  gemini: "gemini-3-flash",
  mistral: "mistral-large-latest",
  groq: "llama-3.3-70b-versatile",
  cerebras: "qwen-3-32b",
  deepseek: "deepseek-chat",
};
/** As docs/hosts.md has it. */
const OLLAMA = { core_fields_only: true };

function quirksOf(id: string): QuirkRow {
  const preset = PRESETS.find((one) => one.id === id);
  if (preset === undefined) return OLLAMA;
  return quirkRow(routeQuirks(preset, MODELS[id]!) ?? preset.quirks ?? {});
}

const serve = (id: string, strict: StrictChat): Promise<Served> =>
  start(id, {
    quirks: quirksOf(id),
    speaks: "[chat.completions]",
    answers: (request) => answerOf(strict, request),
  });

interface Served {
  readonly host: FakeHost;
  readonly gateway: OpenGateway;
  readonly bearer: string;
}

interface Kind {
  readonly quirks: QuirkRow;
  readonly speaks: string;
  readonly answers: (request: FakeRequest) => Behaviour;
}

async function start(id: string, { quirks, speaks, answers }: Kind): Promise<Served> {
  const host = await startFakeHost(answers);
  const gateway = await open(`
hosts:
  - { id: ${id}, base_url: ${host.url}/v1, speaks: ${speaks}, quirks: ${JSON.stringify(quirks)} }
models:
  - id: test/model
    context_length: 100000
    max_output_tokens: 4000
    price: { input: 1, output: 2 }
    routes: [{ host: ${id}, model: m }]
`);
  closing.push(
    () => gateway.close(),
    () => host.close(),
  );
  return { host, gateway, bearer: (await gateway.key(10)).key };
}

const PARAMETERS = { type: "object", properties: { city: { type: "string" } } };
const WEATHER = { name: "get_weather", description: "Weather", parameters: PARAMETERS };

describe.each(Object.entries<StrictChat>(STRICT_CHAT))("%s", (id, strict) => {
  test("serves a chat client that sends all that OpenAI knows, and its answers as they came", async () => {
    const { host, gateway, bearer } = await serve(id, strict);
    const body = {
      model: "test/model",
      store: false,
      metadata: { team: "blue" },
      user: "user-1",
      safety_identifier: "user-1",
      prompt_cache_key: "k",
      service_tier: "auto",
      verbosity: "low",
      max_completion_tokens: 500,
      tools: [{ type: "function", function: WEATHER }],
    };
    const messages: Loose[] = [
      { role: "developer", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "My city is Oslo." },
          { type: "text", text: "How warm is it?" },
        ],
      },
      // As another host answered it.
      {
        role: "assistant",
        content: null,
        refusal: null,
        annotations: [],
        reasoning: "They ask for Rome too.",
        tool_calls: [
          {
            id: "call_0fypS1hVX",
            type: "function",
            function: { name: "get_weather", arguments: '{"city":"Rome"}' },
          },
        ],
      },
      { role: "tool", tool_call_id: "call_0fypS1hVX", content: "20 °C" },
    ];
    const first = await gateway.send("POST", "/v1/chat/completions", {
      bearer,
      json: { ...body, messages: messages.slice(0, 2) },
    });
    expect([first.status, first.text]).toEqual([200, expect.stringContaining("get_weather")]);
    const { message } = first.json.choices[0];
    messages.push(message, {
      role: "tool",
      tool_call_id: message.tool_calls[0].id,
      content: [{ type: "text", text: "4 °C" }],
    });
    const second = await gateway.send("POST", "/v1/chat/completions", {
      bearer,
      json: { ...body, messages },
    });
    expect([second.status, second.text]).toEqual([200, expect.stringContaining("It is 4 °C.")]);
    const ceiling = strict.ceiling ?? "max_tokens";
    expect(host.requests.map((request) => request.json()[ceiling])).toEqual([500, 500]);
    if (quirksOf(id).core_fields_only)
      expect(second.headers.get("x-gateway-omitted")).toContain("metadata, user");
    const sent: Loose[] = host.requests[1]!.json().messages;
    const ids = sent.flatMap(({ tool_calls = [] }) => tool_calls.map((call: Loose) => call.id));
    expect(sent.flatMap(({ tool_call_id }) => tool_call_id ?? [])).toEqual(ids);
  });

  test("serves a responses client as Codex is one", async () => {
    const { gateway, bearer } = await serve(id, strict);
    const body = {
      model: "test/model",
      store: false,
      stream: false,
      instructions: "Be brief.",
      include: ["reasoning.encrypted_content"],
      prompt_cache_key: "k",
      parallel_tool_calls: false,
      text: { verbosity: "low" },
      reasoning: { effort: "xhigh", summary: "auto" },
      max_output_tokens: 500,
      tools: [{ type: "function", ...WEATHER, strict: false }],
    };
    const input: Loose[] = [
      { type: "message", role: "developer", content: [{ type: "input_text", text: "Use tools." }] },
      { type: "message", role: "user", content: [{ type: "input_text", text: "How warm is it in Oslo?" }] },
    ];
    const first = await gateway.send("POST", "/v1/responses", { bearer, json: { ...body, input } });
    expect(first.status).toBe(200);
    const call = first.json.output.find(({ type }: Loose) => type === "function_call");
    input.push(...first.json.output, {
      type: "function_call_output",
      call_id: call.call_id,
      output: "4 °C",
    });
    const second = await gateway.send("POST", "/v1/responses", { bearer, json: { ...body, input } });
    expect([second.status, second.text]).toEqual([200, expect.stringContaining("It is 4 °C.")]);
  });

  test("serves a messages client as Claude Code is one", async () => {
    const { gateway, bearer } = await serve(id, strict);
    const cache_control = { type: "ephemeral" };
    const body = {
      model: "test/model",
      max_tokens: 500,
      metadata: { user_id: "user-1" },
      thinking: { type: "enabled", budget_tokens: 10_000 },
      system: [{ type: "text", text: "Be brief.", cache_control }],
      tools: [{ name: "get_weather", description: "Weather", input_schema: PARAMETERS, cache_control }],
    };
    const messages: Loose[] = [
      { role: "user", content: [{ type: "text", text: "How warm is it in Oslo?", cache_control }] },
      {
        role: "assistant",
        content: [
          {
            type: "tool_use",
            id: "toolu_01A09q90qw90lq917835lq9",
            name: "get_weather",
            input: { city: "Rome" },
          },
        ],
      },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "toolu_01A09q90qw90lq917835lq9", content: "20 °C" }],
      },
    ];
    const first = await gateway.send("POST", "/v1/messages", {
      bearer,
      json: { ...body, messages: messages.slice(0, 1) },
    });
    expect(first.status).toBe(200);
    const call = first.json.content.find(({ type }: Loose) => type === "tool_use");
    messages.push(
      { role: "assistant", content: first.json.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "4 °C" }] },
    );
    const second = await gateway.send("POST", "/v1/messages", { bearer, json: { ...body, messages } });
    expect([second.status, second.text]).toEqual([200, expect.stringContaining("It is 4 °C.")]);
  });
});

describe("OpenAI's models whose chat lacks something", () => {
  const TOOLS = [{ type: "function", function: WEATHER }];
  test.each<[string, string, object, string]>([
    ["gpt-5.6-terra", "tools", { tools: TOOLS }, "/v1/responses"],
    ["gpt-5.6-terra", "tools and an effort", { tools: TOOLS, reasoning_effort: "low" }, "/v1/responses"],
    [
      "gpt-5.6-terra",
      "tools without thoughts",
      { tools: TOOLS, reasoning_effort: "none" },
      "/v1/chat/completions",
    ],
    ["gpt-5.6-terra", "no tools", { reasoning_effort: "low" }, "/v1/chat/completions"],
    ["gpt-5.6-terra", "tools and what only chat can say", { tools: TOOLS, n: 2 }, "/v1/chat/completions"],
    ["gpt-5.1-2025-11-13", "tools", { tools: TOOLS }, "/v1/chat/completions"],
    ["gpt-5-pro-2025-10-06", "a word", {}, "/v1/responses"],
    ["gpt-5.3-codex", "a word", {}, "/v1/responses"],
  ])("%s is asked for %s where it answers", async (name, _what, more, path) => {
    const preset = PRESETS.find(({ id }) => id === "openai")!;
    const { host, gateway, bearer } = await start("openai", {
      quirks: quirkRow(routeQuirks(preset, name) ?? preset.quirks ?? {}),
      speaks: "[chat.completions, responses]",
      answers: (request) => {
        const [answer] = Object.values(request.path === "/v1/responses" ? OPENAI_RESPONSES : OPENAI_CHAT);
        return json(answer!.whole);
      },
    });
    const reply = await gateway.send("POST", "/v1/chat/completions", {
      bearer,
      json: { model: "test/model", max_tokens: 500, messages: [{ role: "user", content: "Hi" }], ...more },
    });
    expect([reply.status, reply.json.object]).toEqual([200, "chat.completion"]);
    expect(host.requests.map((request) => request.path)).toEqual([path]);
  });
});
