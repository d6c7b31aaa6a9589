import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import type { GenerationRequest, HostBody, HostTarget } from "../../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../../src/surfaces/surfaces.ts";
import { type Refusal, refused } from "../../../src/units/errors/refusal.ts";
import { sseText } from "../../fakes/transcripts.ts";
import { bodyOf, lastOf } from "../harness.ts";

/** What becomes of single fields, seals and names between two languages. */
const TARGET: HostTarget = {
  model: "host-model",
  publicModel: "anthropic/test",
  stream: false,
  quirks: {},
  maxOutputTokens: null,
  defaultMaxOutputTokens: 4_096,
};
const METADATA = { publicModel: "anthropic/test", atS: 1_763_000_000 };
const SMALLEST = {
  "chat.completions": { messages: [{ role: "user", content: "Hi" }] },
  responses: { input: "Hi" },
  messages: { messages: [{ role: "user", content: "Hi" }], max_tokens: 2_000 },
} as const;

function read(client: SurfaceName, more: object): GenerationRequest {
  const body = JSON.stringify({ model: "anthropic/test", ...SMALLEST[client], ...more });
  const request = SURFACES[client].readRequest(Buffer.from(body));
  if (refused(request)) throw new Error(request.message);
  return request;
}

const hostBody = (client: SurfaceName, host: SurfaceName, more: object, target = TARGET) =>
  pairing(client, host).hostBody(read(client, more), target);

function sent(client: SurfaceName, host: SurfaceName, more: object, target = TARGET) {
  const body = hostBody(client, host, more, target);
  if (refused(body)) throw new Error(body.message);
  return { json: JSON.parse(Buffer.concat(body.parts).toString()), omitted: body.omitted };
}

describe("a field that the host's language lacks", () => {
  const refusals: [SurfaceName, SurfaceName, object, string][] = [
    ["chat.completions", "messages", { n: 2 }, "n"],
    ["chat.completions", "messages", { logprobs: true }, "logprobs"],
    ["chat.completions", "responses", { stop: Array(65).fill("END") }, "stop"],
    ["chat.completions", "responses", { presence_penalty: 0.5 }, "presence_penalty"],
    ["chat.completions", "messages", { logit_bias: { 50256: -100 } }, "logit_bias"],
    ["chat.completions", "messages", { temperature: 1.5 }, "temperature"],
    ["chat.completions", "messages", { modalities: ["text", "audio"] }, "modalities"],
    ["chat.completions", "messages", { service_tier: "flex" }, "service_tier"],
    [
      "chat.completions",
      "messages",
      { messages: [{ role: "user", content: [{ type: "file", file: { file_id: "file-1" } }] }] },
      "messages[0].content[0].file.file_id",
    ],
    ["responses", "messages", { tools: [{ type: "file_search", vector_store_ids: [] }] }, "tools[0].type"],
    ["responses", "chat.completions", { prompt: { id: "pmpt_1" } }, "prompt"],
    ["messages", "responses", { top_k: 5 }, "top_k"],
    ["responses", "messages", { frequency_penalty: 1 }, "frequency_penalty"],
    ["messages", "responses", { stop_sequences: ["E".repeat(1_025)] }, "stop_sequences"],
    ["messages", "responses", { tools: [{ type: "bash_20250124", name: "bash" }] }, "tools[0].type"],
    [
      "messages",
      "chat.completions",
      {
        messages: [
          {
            role: "user",
            content: [
              {
                type: "document",
                source: { type: "text", media_type: "text/plain", data: "x" },
                citations: { enabled: true },
              },
            ],
          },
        ],
      },
      "messages[0].content[0].citations",
    ],
  ];
  test.each(refusals)("from %s to %s, %j is refused as %s", (client, host, more, param) => {
    const refusal = hostBody(client, host, more) as Refusal;
    expect([refusal.code, refusal.details.param]).toEqual(["invalid_request", param]);
    expect(refusal.message).toContain(`\`${param}\``);
    expect(refusal.message).toContain(host);
  });

  const PAIRS = SURFACE_NAMES.flatMap((client) =>
    SURFACE_NAMES.filter((host) => host !== client).map((host): [SurfaceName, SurfaceName] => [client, host]),
  );
  test.each(PAIRS)(
    "from %s to %s, what nobody knows is left out and named, as far as it is a name",
    (client, host) => {
      const odd = { "x y\r\nset-cookie: a": 1, ["n".repeat(65)]: 2, gone: null };
      const { json, omitted } = sent(client, host, { nobody_knows: { at: 1 }, next_year: false, ...odd });
      expect(omitted).toEqual(["nobody_knows", "next_year", "*"]);
      for (const name of ["nobody_knows", "next_year", ...Object.keys(odd)])
        expect(json).not.toHaveProperty([name]);
    },
  );

  test("a header names no more than 32 of them", () => {
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`unknown_${at}`, at]));
    const { omitted } = sent("chat.completions", "messages", many);
    expect(omitted).toHaveLength(33);
    expect(omitted.at(-1)).toBe("*");
  });

  const NO_CORE = { ...TARGET, quirks: { coreFieldsOnly: true } };
  const OPENAI = { ...TARGET, quirks: { maxCompletionTokens: true } };
  test.each([NO_CORE, OPENAI])(
    "top_k of messages goes to chat hosts, but to those that refuse it: %j",
    (target) => {
      expect(sent("messages", "chat.completions", { top_k: 5 }).json.top_k).toBe(5);
      const refusal = hostBody("messages", "chat.completions", { top_k: 5 }, target) as Refusal;
      expect(refusal.details.param).toBe("top_k");
    },
  );

  const words: [SurfaceName, SurfaceName, object, object, string[]][] = [
    ["chat.completions", "responses", { enable_thinking: false }, { reasoning: { effort: "none" } }, []],
    [
      "chat.completions",
      "responses",
      { thinking: { type: "disabled" } },
      { reasoning: { effort: "none" } },
      [],
    ],
    ["chat.completions", "responses", { disable_reasoning: true }, { reasoning: { effort: "none" } }, []],
    [
      "chat.completions",
      "responses",
      { chat_template_kwargs: { enable_thinking: false, tone: "x" } },
      { reasoning: { effort: "none" } },
      ["chat_template_kwargs.tone"],
    ],
    [
      "chat.completions",
      "messages",
      { enable_thinking: true, thinking_budget: 1_500, max_tokens: 4_000 },
      { thinking: { type: "enabled", budget_tokens: 1_500 } },
      [],
    ],
    [
      "chat.completions",
      "messages",
      { thinking: { type: "enabled", budget_tokens: 1_200 }, max_tokens: 4_000 },
      { thinking: { type: "enabled", budget_tokens: 1_200 } },
      [],
    ],
    ["responses", "chat.completions", { enable_thinking: false }, { reasoning_effort: "none" }, []],
    ["responses", "chat.completions", { reasoning_effort: "low" }, { reasoning_effort: "low" }, []],
    ["messages", "chat.completions", { reasoning_effort: "high" }, { reasoning_effort: "high" }, []],
    // The language's own word goes before.
    [
      "chat.completions",
      "responses",
      { reasoning_effort: "high", enable_thinking: false },
      { reasoning: { effort: "high" } },
      [],
    ],
    ["chat.completions", "responses", { reasoning_format: "parsed" }, {}, []],
    ["chat.completions", "responses", { reasoning_format: "raw" }, {}, ["reasoning_format"]],
    ["chat.completions", "messages", { random_seed: 7 }, {}, ["random_seed"]],
    ["responses", "chat.completions", { random_seed: 7, top_k: 3 }, { seed: 7, top_k: 3 }, []],
    ["messages", "chat.completions", { seed: 7, presence_penalty: 1 }, { seed: 7, presence_penalty: 1 }, []],
    ["responses", "messages", { stop: "END", top_k: 3 }, { stop_sequences: ["END"], top_k: 3 }, []],
  ];
  test.each(words)(
    "from %s to %s, %j of other hosts is sent as %j",
    (client, host, more, expected, omitted) => {
      const body = sent(client, host, more);
      const names = [
        "reasoning",
        "reasoning_effort",
        "thinking",
        "seed",
        "top_k",
        "stop_sequences",
        "presence_penalty",
      ];
      const kept = Object.fromEntries(
        names.flatMap((name) => (name in body.json ? [[name, body.json[name]]] : [])),
      );
      expect(kept).toEqual(expected);
      expect([...body.omitted]).toEqual(omitted);
      for (const name of ["enable_thinking", "thinking_budget", "random_seed", "chat_template_kwargs"])
        expect(body.json).not.toHaveProperty(name);
    },
  );

  test.each<[SurfaceName, object]>([
    ["chat.completions", { response_format: { type: "json_object" } }],
    ["responses", { text: { format: { type: "json_object" } } }],
  ])(
    "JSON mode of %s, which messages lacks, is sent to the model behind what the client says",
    (client, more) => {
      const alone = sent(client, "messages", more);
      expect(alone.json).not.toHaveProperty("output_config");
      const [text] = alone.json.system;
      expect(text).toEqual({ type: "text", text: expect.stringContaining("JSON object") });
      expect(alone.omitted).toEqual(["json_mode"]);
      const messages = [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hi" },
      ];
      const brief = client === "responses" ? { instructions: "Be brief." } : { messages };
      const { json } = sent(client, "messages", { ...more, ...brief });
      expect(json.system).toEqual([{ type: "text", text: "Be brief." }, text]);
    },
  );

  const nothings: [SurfaceName, SurfaceName, object][] = [
    ["chat.completions", "messages", { n: 1, presence_penalty: 0, logprobs: false, logit_bias: {} }],
    ["chat.completions", "responses", { stop: [], frequency_penalty: 0, seed: null }],
    ["messages", "chat.completions", { top_k: null, speed: "standard" }],
  ];
  test.each(nothings)("from %s to %s, %j asks for nothing", (client, host, more) => {
    expect(sent(client, host, more).omitted).toEqual([]);
  });

  const omissions: [SurfaceName, SurfaceName, object, string[]][] = [
    [
      "chat.completions",
      "messages",
      { seed: 7, metadata: { a: "b" }, verbosity: "low" },
      ["seed", "metadata", "verbosity"],
    ],
    [
      "responses",
      "messages",
      { truncation: "auto", client_metadata: { a: "b" } },
      ["truncation", "client_metadata"],
    ],
    ["responses", "chat.completions", { tools: [{ type: "web_search" }] }, ["tools[].web_search"]],
    ["messages", "responses", { cache_control: { type: "ephemeral" } }, ["cache_control"]],
    ["messages", "chat.completions", { cache_control: { type: "ephemeral" } }, ["cache_control"]],
    ["chat.completions", "responses", { cache_control: { type: "ephemeral" } }, ["cache_control"]],
    ["responses", "chat.completions", { cache_control: { type: "ephemeral" } }, ["cache_control"]],
    ["messages", "responses", { metadata: { user_id: "u".repeat(65) } }, ["metadata.user_id"]],
  ];
  test.each<[SurfaceName, SurfaceName, object, string[]]>([
    [
      "responses",
      "chat.completions",
      { reasoning: { effort: "low", mode: "pro", context: "all_turns" } },
      ["reasoning.mode", "reasoning.context"],
    ],
    ["responses", "messages", { reasoning: { mode: "standard", context: "auto" } }, []],
    [
      "messages",
      "chat.completions",
      { output_config: { task_budget: { type: "tokens", total: 9 } } },
      ["task_budget"],
    ],
  ])("from %s to %s, of %j is left out what the host cannot receive: %j", (client, host, more, names) => {
    expect(sent(client, host, more).omitted).toEqual(names);
  });
  test.each(omissions)("from %s to %s, %j is left out and named", (client, host, more, names) => {
    const { json, omitted } = sent(client, host, more);
    expect(omitted).toEqual(names);
    for (const name of Object.keys(more)) expect(json).not.toHaveProperty(name);
  });
});

const CALL = {
  type: "namespace",
  name: "mcp",
  tools: [{ type: "function", name: "look", parameters: { type: "object" } }],
};

describe("tools in a namespace", () => {
  test("are one flat list elsewhere, and their calls get both names back", () => {
    const tools = [CALL, { type: "custom", name: "patch" }];
    const { json } = sent("responses", "messages", { tools });
    expect(json.tools.map(({ name }: { name: string }) => name)).toEqual(["mcp__look", "patch"]);
    const answer = {
      id: "msg_1",
      type: "message",
      role: "assistant",
      content: [
        { type: "tool_use", id: "toolu_1", name: "mcp__look", input: { at: 1 } },
        { type: "tool_use", id: "toolu_2", name: "patch", input: { input: "*** Begin\n" } },
      ],
      stop_reason: "tool_use",
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    const request = read("responses", { tools });
    const reply = pairing("responses", "messages").readReply(
      Buffer.from(JSON.stringify(answer)),
      request,
      METADATA,
    );
    expect(JSON.parse(bodyOf(reply)).output).toMatchObject([
      { type: "function_call", namespace: "mcp", name: "look", call_id: "toolu_1", arguments: '{"at":1}' },
      { type: "custom_tool_call", name: "patch", call_id: "toolu_2", input: "*** Begin\n" },
    ]);
  });

  test("keep their names apart where they are too long", () => {
    const long = "n".repeat(60);
    const tools = ["one", "two"].map((name) => ({
      type: "function",
      name: `${"x".repeat(20)}${name}`,
      parameters: {},
    }));
    const { json } = sent("responses", "chat.completions", {
      tools: [{ type: "namespace", name: long, tools }],
    });
    const names = json.tools.map((tool: { function: { name: string } }) => tool.function.name);
    expect(new Set(names).size).toBe(2);
    for (const name of names) expect(name.length).toBeLessThanOrEqual(64);
  });
});

describe("tools of a messages client whose names are longer than OpenAI's hosts take", () => {
  const [long, twin] = ["first", "second"].map(
    (end) => `mcp__plugin_browser__${"take_a_picture_of_".repeat(3)}${end}`,
  );
  const tools = [long, twin, "look"].map((name) => ({ name, input_schema: { type: "object" } }));
  const messages = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: twin, input: {} }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "done" }] },
  ];
  const more = { tools, messages, tool_choice: { type: "tool", name: long } };

  test("go by shorter ones there, the same wherever they are named", () => {
    const { json } = sent("messages", "chat.completions", more);
    const names = json.tools.map((tool: { function: { name: string } }) => tool.function.name);
    expect(names[2]).toBe("look");
    expect(new Set(names).size).toBe(3);
    for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(json.tool_choice.function.name).toBe(names[0]);
    expect(json.messages[1].tool_calls[0].function.name).toBe(names[1]);
  });

  test("are called by their own, streamed or not", () => {
    const { json } = sent("messages", "chat.completions", more);
    const call = {
      id: "call_1",
      type: "function",
      function: { name: json.tools[0].function.name, arguments: "{}" },
    };
    const choice = { index: 0, finish_reason: "tool_calls" };
    const whole = { choices: [{ ...choice, message: { role: "assistant", tool_calls: [call] } }] };
    const { readReply, openStream } = pairing("messages", "chat.completions");
    const reply = readReply(Buffer.from(JSON.stringify(whole)), read("messages", more), METADATA);
    expect(JSON.parse(bodyOf(reply)).content[0]).toMatchObject({ name: long });
    const chunk = { choices: [{ ...choice, delta: { tool_calls: [{ index: 0, ...call }] } }] };
    const stream = openStream(read("messages", { ...more, stream: true }), METADATA);
    const events = sseText([{ data: JSON.stringify(chunk) }, { data: "[DONE]" }]);
    expect(Buffer.from(stream.push(Buffer.from(events))).toString()).toContain(`"name":"${long}"`);
  });
});

describe("sealed thoughts", () => {
  const thinking = [
    { type: "message_start", message: { id: "msg_1", usage: { input_tokens: 5, output_tokens: 1 } } },
    {
      type: "content_block_start",
      index: 0,
      content_block: { type: "thinking", thinking: "", signature: "" },
    },
    { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Hm." } },
    { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "c2ln" } },
    { type: "content_block_stop", index: 0 },
    { type: "content_block_start", index: 1, content_block: { type: "redacted_thinking", data: "cmVk" } },
    { type: "content_block_stop", index: 1 },
    {
      type: "content_block_start",
      index: 2,
      content_block: { type: "tool_use", id: "toolu_1", name: "f", input: {} },
    },
    { type: "content_block_stop", index: 2 },
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 9 } },
    { type: "message_stop" },
  ].map((data) => ({ event: data.type, data: JSON.stringify(data) }));

  const request = {
    stream: true,
    reasoning: { effort: "high" },
    include: ["reasoning.encrypted_content"],
    tools: [{ type: "function", name: "f", parameters: { type: "object" } }],
  };

  function output(): object[] {
    const judge = pairing("responses", "messages").openStream(read("responses", request), METADATA);
    judge.push(Buffer.from(sseText(thinking)));
    const text = lastOf(judge);
    return JSON.parse(text.slice(text.indexOf("data: ") + 6)).response.output;
  }

  const goOn = (publicModel: string, host: SurfaceName) => {
    const input = [
      { role: "user", content: "Hi" },
      ...output(),
      { type: "function_call_output", call_id: "toolu_1", output: "ok" },
    ];
    return sent("responses", host, { ...request, input }, { ...TARGET, publicModel });
  };

  test("come back to the family that made them, as they were", () => {
    const { json, omitted } = goOn("anthropic/another", "messages");
    expect(json.messages[1].content).toEqual([
      { type: "thinking", thinking: "Hm.", signature: "c2ln" },
      { type: "redacted_thinking", data: "cmVk" },
      { type: "tool_use", id: "toolu_1", name: "f", input: {} },
    ]);
    expect(json.thinking.type).toBe("enabled");
    expect(omitted).toEqual([]);
  });

  test.each<[string, SurfaceName]>([
    ["other/model", "messages"],
    ["anthropic/test", "chat.completions"],
    ["anthropic/test", "responses"],
  ])("of another family are not sent to %s on %s, and that is reported", (publicModel, host) => {
    const { json, omitted } = goOn(publicModel, host);
    expect(JSON.stringify(json)).not.toContain("gwseal");
    expect(JSON.stringify(json)).not.toContain("c2ln");
    expect(omitted).toContain("reasoning");
  });

  test("are left out for a host of the client's own language too", () => {
    const sealed = "gwseal:1:responses/openai:encrypted:rs_1 ZW5j";
    const more = {
      messages: [
        { role: "user", content: "Hi" },
        { role: "assistant", content: [{ type: "thinking", thinking: "Hm.", signature: sealed }] },
        {
          role: "assistant",
          content: [
            { type: "redacted_thinking", data: sealed },
            { type: "text", text: "gwseal:1: is only a word here" },
          ],
        },
      ],
    };
    const { parts, omitted } = hostBody("messages", "messages", more) as HostBody;
    expect(JSON.parse(Buffer.concat(parts).toString()).messages).toEqual([
      { role: "user", content: "Hi" },
      { role: "assistant", content: [{ type: "text", text: "gwseal:1: is only a word here" }] },
    ]);
    expect(omitted).toEqual(["reasoning"]);
  });
});

test("parallel results with images keep together, and what is no text follows", () => {
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
  const { json } = sent("messages", "chat.completions", {
    messages: [
      { role: "user", content: "Hi" },
      {
        role: "assistant",
        content: ["a", "b"].map((id) => ({ type: "tool_use", id, name: "f", input: {} })),
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: [image] },
          { type: "tool_result", tool_use_id: "b", content: "fine", is_error: true },
          { type: "text", text: "Go on." },
        ],
      },
    ],
  });
  expect(json.messages.slice(2).map(({ role }: { role: string }) => role)).toEqual([
    "tool",
    "tool",
    "user",
    "user",
  ]);
  expect(json.messages[4].content[1].image_url.url).toBe("data:image/png;base64,AAAA");
});

test("a text that says nothing is not sent to a host of messages, which would refuse the request", () => {
  const messages = [
    { role: "system", content: "" },
    {
      role: "user",
      content: [
        { type: "text", text: "" },
        { type: "text", text: "Hi" },
      ],
    },
    { role: "assistant", content: "Hello" },
    { role: "system", content: "" },
    { role: "user", content: "Bye" },
  ];
  const { json } = sent("chat.completions", "messages", { messages });
  expect(json).not.toHaveProperty("system");
  expect(json.messages).toEqual([
    { role: "user", content: [{ type: "text", text: "Hi" }] },
    { role: "assistant", content: [{ type: "text", text: "Hello" }] },
    { role: "user", content: [{ type: "text", text: "Bye" }] },
  ]);
  expect(sent("responses", "messages", { instructions: "" }).json).not.toHaveProperty("system");
});

describe("a request of nothing but instructions, where the host wants a user's turn", () => {
  const brief = { type: "text", text: "Write a haiku." };
  const only: [SurfaceName, object][] = [
    ["chat.completions", { messages: [{ role: "system", content: "Write a haiku." }] }],
    ["chat.completions", { messages: [{ role: "developer", content: "Write a haiku." }] }],
    [
      "chat.completions",
      {
        messages: [
          { role: "system", content: "Write a haiku." },
          { role: "user", content: "" },
        ],
      },
    ],
    ["responses", { instructions: "Write a haiku.", input: "" }],
    ["responses", { input: [{ role: "developer", content: "Write a haiku." }] }],
  ];
  test.each(only)("%s %j is said as the user's", (client, more) => {
    const { json, omitted } = sent(client, "messages", more);
    expect([json.messages, json.system]).toEqual([[{ role: "user", content: [brief] }], undefined]);
    expect(omitted).toEqual([]);
  });

  test("several are one turn, in their order, and JSON mode stays the host's own instruction", () => {
    const { json } = sent("chat.completions", "messages", {
      response_format: { type: "json_object" },
      messages: [
        { role: "system", content: "Write a haiku." },
        { role: "user", content: "" },
        { role: "developer", content: "About JSON." },
      ],
    });
    const both = [brief, { type: "text", text: "About JSON." }];
    expect(json.messages).toEqual([{ role: "user", content: both }]);
    expect(json.system).toEqual([{ type: "text", text: expect.stringContaining("JSON object") }]);
  });

  test.each<[SurfaceName, object, string]>([
    ["chat.completions", { messages: [{ role: "system", content: "" }] }, "messages"],
    ["responses", { input: "" }, "input"],
  ])("%s %j, without a word in it, is refused as %s", (client, empty, param) => {
    const refusal = hostBody(client, "messages", empty) as Refusal;
    expect([refusal.code, refusal.details.param]).toEqual(["invalid_request", param]);
  });
});

test("a cache key asks Anthropic's hosts to cache, unless the client marks parts itself", () => {
  const chat = {
    prompt_cache_key: "k",
    messages: [
      { role: "system", content: "Be" },
      { role: "user", content: "Hi" },
    ],
  };
  const { json } = sent("chat.completions", "messages", chat);
  expect(json.system[0].cache_control).toEqual({ type: "ephemeral" });
  expect(json.messages[0].content[0].cache_control).toEqual({ type: "ephemeral" });
});

describe("a prompt that is to be cached without marks in it", () => {
  const cache_control = { type: "ephemeral", ttl: "1h" };
  const OPENROUTER = { ...TARGET, quirks: { cacheControl: true } };

  test.each<[SurfaceName, SurfaceName, HostTarget]>([
    ["chat.completions", "messages", TARGET],
    ["responses", "messages", TARGET],
    ["responses", "chat.completions", OPENROUTER],
    ["messages", "chat.completions", OPENROUTER],
  ])("from %s to %s, is asked for where the host can do it", (client, host, target) => {
    const { json, omitted } = sent(client, host, { cache_control }, target);
    expect([json.cache_control, omitted]).toEqual([cache_control, []]);
  });

  test("is not marked for its key too, which might ask for another time", () => {
    const { json } = sent("chat.completions", "messages", { cache_control, prompt_cache_key: "k" });
    expect(json.messages).toEqual([{ role: "user", content: [{ type: "text", text: "Hi" }] }]);
  });

  test("must be an object", () => {
    const refusal = hostBody("chat.completions", "messages", { cache_control: "yes" }) as Refusal;
    expect([refusal.code, refusal.details.param]).toEqual(["invalid_request", "cache_control"]);
  });
});

test.each(SURFACE_NAMES)("a %s client whose host reports no usage receives what was counted", (client) => {
  const host: SurfaceName = client === "messages" ? "chat.completions" : "messages";
  const events =
    host === "messages"
      ? [
          { event: "message_start", data: '{"type":"message_start","message":{"id":"m"}}' },
          {
            event: "content_block_start",
            data: '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
          },
          {
            event: "content_block_delta",
            data: '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello there"}}',
          },
          { event: "message_stop", data: '{"type":"message_stop"}' },
        ]
      : [
          {
            data: '{"id":"c","choices":[{"index":0,"delta":{"content":"Hello there"},"finish_reason":null}]}',
          },
          { data: '{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}' },
          { data: "[DONE]" },
        ];
  const request = read(client, {
    stream: true,
    ...(client === "chat.completions" ? { stream_options: { include_usage: true } } : {}),
  });
  const judge = pairing(client, host).openStream(request, METADATA);
  const text = Buffer.from(judge.push(Buffer.from(sseText(events)))).toString() + lastOf(judge);
  expect(judge.usage).toBeNull();
  expect(text).toMatch(/"(completion|output)_tokens":3/);
});

test("a host's signs of life reach the client in its own language, once the answer has started", () => {
  const ping = ": OPENROUTER PROCESSING\n\n";
  const token = 'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n';
  for (const [client, form] of [
    ["messages", 'event: ping\ndata: {"type":"ping"}\n\n'],
    ["responses", ": ping\n\n"],
  ] as const) {
    const judge = pairing(client, "chat.completions").openStream(read(client, { stream: true }), METADATA);
    expect(judge.push(Buffer.from(ping)).length).toBe(0);
    expect(judge.tokenSeen).toBe(false);
    judge.push(Buffer.from(token));
    expect(Buffer.from(judge.push(Buffer.from(ping))).toString()).toBe(form);
  }
});

describe("a tool of Anthropic's language that says it is `custom`, as its functions may", () => {
  const tools = [{ type: "custom", name: "search", input_schema: { type: "object" } }];
  const args = '{"input":"Paris"}';
  const call = (more: object) => ({ id: "call_1", type: "function", function: { name: "search", ...more } });

  test("gets its arguments as JSON, as the host writes them", () => {
    const judge = pairing("messages", "chat.completions").openStream(
      read("messages", { tools, stream: true }),
      METADATA,
    );
    const chunk = (delta: object) => JSON.stringify({ id: "chatcmpl-1", choices: [{ index: 0, delta }] });
    const started = judge.push(
      Buffer.from(
        sseText([
          { data: chunk({ tool_calls: [{ index: 0, ...call({ arguments: "" }) }] }) },
          { data: chunk({ tool_calls: [{ index: 0, function: { arguments: '{"input"' } }] }) },
        ]),
      ),
    );
    expect(Buffer.from(started).toString()).toContain('"partial_json":"{\\"input\\""');
  });

  test("gets them in an unstreamed answer too", () => {
    const whole = {
      id: "chatcmpl-1",
      choices: [
        { index: 0, message: { tool_calls: [call({ arguments: args })] }, finish_reason: "tool_calls" },
      ],
    };
    const reply = pairing("messages", "chat.completions").readReply(
      Buffer.from(JSON.stringify(whole)),
      read("messages", { tools }),
      METADATA,
    );
    expect(JSON.parse(bodyOf(reply)).content).toMatchObject([
      { type: "tool_use", name: "search", input: { input: "Paris" } },
    ]);
  });
});

test.each<[SurfaceName, SurfaceName, object]>([
  ["chat.completions", "messages", { type: "function", function: { name: "a" } }],
  ["responses", "messages", { type: "function", name: "a", parameters: {} }],
  ["messages", "chat.completions", { type: "custom", name: "a", input_schema: {} }],
])("from %s to %s, a second name of a tool that is no text is nothing", (client, host, tool) => {
  const tools = [{ custom: { name: { toString: 1 } }, ...tool }];
  const request = read(client, { tools, stream: true });
  expect(refused(pairing(client, host).hostBody(request, TARGET))).toBe(false);
  expect(() => pairing(client, host).openStream(request, METADATA)).not.toThrow();
});

test("a freeform tool that is called without any text is called with none", () => {
  const tools = [{ type: "custom", name: "list" }];
  const answer = {
    id: "msg_1",
    content: [{ type: "tool_use", id: "toolu_1", name: "list", input: {} }],
    stop_reason: "tool_use",
    usage: { input_tokens: 1, output_tokens: 1 },
  };
  const reply = pairing("responses", "messages").readReply(
    Buffer.from(JSON.stringify(answer)),
    read("responses", { tools }),
    METADATA,
  );
  expect(JSON.parse(bodyOf(reply)).output).toMatchObject([
    { type: "custom_tool_call", name: "list", input: "" },
  ]);
});

test("an answer is named after the first chunk that has a name", () => {
  const azure = [
    { data: '{"id":"","object":"","choices":[],"prompt_filter_results":[]}' },
    { data: '{"id":"chatcmpl-abc","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}' },
    { data: "[DONE]" },
  ];
  const judge = pairing("messages", "chat.completions").openStream(
    read("messages", { stream: true }),
    METADATA,
  );
  expect(Buffer.from(judge.push(Buffer.from(sseText(azure)))).toString()).toContain('"id":"msg_abc"');
});

/** What `String` cannot make a text of. */
const NO_TEXT = { toString: 1 };

test.each<[SurfaceName, object, string]>([
  [
    "chat.completions",
    { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [{ type: "function", name: NO_TEXT }] } },
    "tool_choice.allowed_tools.tools[0].name",
  ],
  [
    "responses",
    { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: NO_TEXT }] },
    "tool_choice.tools[0].name",
  ],
])("a %s client that allows a tool whose name is no text gets an error", (client, choice, param) => {
  const body = hostBody(client, "messages", { tool_choice: choice });
  if (!refused(body)) throw new Error("sent");
  expect(body.details.param).toBe(param);
});

test("a grammar that is no text breaks nothing", () => {
  const format = { type: "grammar", syntax: NO_TEXT, definition: NO_TEXT };
  const tools = [{ type: "custom", name: "a", format }];
  expect(refused(hostBody("responses", "messages", { tools }))).toBe(false);
});

test.each<[SurfaceName, SurfaceName, object]>([
  ["chat.completions", "messages", { type: "content_block_start", content_block: { type: NO_TEXT } }],
  [
    "chat.completions",
    "messages",
    { type: "content_block_start", content_block: { type: "tool_use", id: NO_TEXT, name: NO_TEXT } },
  ],
  ["chat.completions", "messages", { type: "message_delta", delta: { stop_reason: NO_TEXT } }],
  [
    "messages",
    "responses",
    {
      type: "response.output_item.added",
      output_index: NO_TEXT,
      item: { type: "function_call", call_id: NO_TEXT, name: NO_TEXT },
    },
  ],
])("a %s client whose %s host says %j gets no fault of the gateway's own", (client, host, event) => {
  const judge = pairing(client, host).openStream(read(client, { stream: true }), METADATA);
  expect(() => judge.push(Buffer.from(sseText([{ data: JSON.stringify(event) }])))).not.toThrow();
});

test.each<[SurfaceName, SurfaceName]>([
  ["messages", "chat.completions"],
  ["responses", "chat.completions"],
])(
  "from a %s client, what is put together from a %s host that reports no usage is billed as counted",
  (client, host) => {
    const judge = pairing(client, host).openWhole(read(client, {}), METADATA);
    const delta = { role: "assistant", content: "Hello" };
    const events = [{ choices: [{ delta }] }, { choices: [{ delta: {}, finish_reason: "stop" }] }];
    const data = [...events.map((event) => JSON.stringify(event)), "[DONE]"].map((data) => ({ data }));
    judge.push(Buffer.from(sseText(data)));
    const reply = judge.reply();
    expect(reply).toMatchObject({ kind: "reply", usage: null, countedTokens: 2 });
    // The client receives something all the same.
    const { usage } = JSON.parse(bodyOf(reply));
    expect(usage.output_tokens).toBe(2);
  },
);

const numbered = <T>(make: (index: number) => T): T[] => Array.from({ length: 5_000 }, (_, at) => make(at));
test.each<[string, SurfaceName, object[]]>([
  [
    "calls in one chunk",
    "chat.completions",
    [
      {
        choices: [
          { delta: { tool_calls: numbered((index) => ({ index, id: `call_${index}`, function: {} })) } },
        ],
      },
    ],
  ],
  [
    "calls, one in each chunk",
    "chat.completions",
    numbered((index) => ({
      choices: [{ delta: { tool_calls: [{ index, id: `call_${index}`, function: {} }] } }],
    })),
  ],
  [
    "messages",
    "responses",
    numbered((output_index) => ({
      type: "response.output_item.added",
      output_index,
      item: { type: "message" },
    })),
  ],
])("a host that begins thousands of %s and ends none is broken", (_what, host, events) => {
  const judge = pairing("messages", host).openStream(read("messages", { stream: true }), METADATA);
  judge.push(Buffer.from(sseText(events.map((event) => ({ data: JSON.stringify(event) })))));
  expect(judge.fault?.message).toBe("the answer has more than 1024 tool calls, blocks or choices");
});

describe("a freeform call that nobody declared reaches a client of Messages as an object, as all calls there are", () => {
  const words = '*** Begin "patch"\n\t\\ud83d\ud83d\ude00\n';
  const [head, tail] = [words.slice(0, words.indexOf("\ude00")), words.slice(words.indexOf("\ude00"))];
  const item = { id: "ctc_1", type: "custom_tool_call", call_id: "call_1", name: "patch" };
  const call = { index: 0, id: "call_1", type: "custom" };
  const custom = (input: string, more: object = {}) => ({
    id: "c1",
    choices: [{ index: 0, delta: { tool_calls: [{ ...call, custom: { name: "patch", input } }] } }],
    ...more,
  });
  const HOSTS: [SurfaceName, events: object[], whole: object][] = [
    [
      "chat.completions",
      [
        custom(head),
        custom(tail),
        { id: "c1", choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
      ],
      {
        id: "c1",
        choices: [
          {
            index: 0,
            message: {
              role: "assistant",
              tool_calls: [{ ...call, custom: { name: "patch", input: words } }],
            },
            finish_reason: "tool_calls",
          },
        ],
      },
    ],
    [
      "responses",
      [
        { type: "response.created", response: { id: "resp_1" } },
        { type: "response.output_item.added", output_index: 0, item: { ...item, input: "" } },
        { type: "response.custom_tool_call_input.delta", output_index: 0, delta: head },
        { type: "response.custom_tool_call_input.delta", output_index: 0, delta: tail },
        { type: "response.output_item.done", output_index: 0, item: { ...item, input: words } },
        { type: "response.completed", response: { status: "completed" } },
      ],
      { id: "resp_1", status: "completed", output: [{ ...item, input: words }] },
    ],
  ];

  test.each(HOSTS)("from a host of %s, streamed or not", (host, events, whole) => {
    const inputsOf = (sent: object[]): string => {
      const judge = pairing("messages", host).openStream(read("messages", { stream: true }), METADATA);
      const text = Buffer.from(
        judge.push(
          Buffer.from(`${sent
            .map(
              (event) => `data: ${JSON.stringify(event)}

`,
            )
            .join("")}data: [DONE]

`),
        ),
      ).toString();
      return [...text.matchAll(/^data: (.*)$/gm)]
        .map(([, data]) => JSON.parse(data!).delta?.partial_json ?? "")
        .join("");
    };
    expect(JSON.parse(inputsOf(events))).toEqual({ input: words });
    const empty = JSON.stringify(events)
      .replaceAll(JSON.stringify(head), '""')
      .replaceAll(JSON.stringify(tail), '""');
    expect(JSON.parse(inputsOf(JSON.parse(empty.replaceAll(JSON.stringify(words), '""'))))).toEqual({
      input: "",
    });
    const reply = pairing("messages", host).readReply(
      Buffer.from(JSON.stringify(whole)),
      read("messages", {}),
      METADATA,
    );
    expect(JSON.parse(bodyOf(reply)).content).toMatchObject([
      { type: "tool_use", name: "patch", input: { input: words } },
    ]);
  });
});
