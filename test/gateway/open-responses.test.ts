import { afterAll, describe, expect, test } from "bun:test";
import { json, sse } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { type FakeRequest, startFakeHost } from "../fakes/host.ts";
import {
  chatReasoning,
  chatText,
  chatToolCall,
  type HostAnswer,
  messagesText,
  messagesThinking,
  messagesToolUse,
  responsesReasoning,
  responsesText,
  responsesToolCall,
  type SseEvent,
} from "../fakes/transcripts.ts";
import { open } from "./open.ts";
import { inCompaction, inEvent, inResponse } from "./open-responses-schema.ts";

/**
 * What Open Responses' compliance tests ask over HTTP, on hosts of each language. A strict client must not be able to
 * tell them apart.
 */

const ANSWERS = {
  chat: { text: chatText(), tool: chatToolCall(), thought: chatReasoning() },
  messages: { text: messagesText(), tool: messagesToolUse(), thought: messagesThinking() },
  responses: { text: responsesText(), tool: responsesToolCall(), thought: responsesReasoning() },
};
type Language = keyof typeof ANSWERS;
const LANGUAGES = Object.keys(ANSWERS) as Language[];

/** As OpenAI says it, which the transcripts are older than. */
const complete = (response: Record<string, unknown>) => ({
  ...response,
  completed_at: response.status === "completed" ? 1_763_000_001 : null,
  presence_penalty: 0,
  frequency_penalty: 0,
});

function ofToday({ events, whole }: HostAnswer): HostAnswer {
  const known = events.map((event): SseEvent => {
    const data = JSON.parse(event.data);
    return data.response === undefined
      ? event
      : { ...event, data: JSON.stringify({ ...data, response: complete(data.response) }) };
  });
  return { events: known, whole: complete(whole) };
}

/** What OpenAI makes of `compaction_trigger`. */
function compacted(): Record<string, unknown> {
  const item = { id: "cmp_1", type: "compaction", encrypted_content: "gAAAA" };
  return { ...complete(responsesText().whole), output: [item] };
}

const pick = (request: FakeRequest): HostAnswer => {
  const path = request.path;
  const language = path.endsWith("/chat/completions")
    ? "chat"
    : path.endsWith("/messages")
      ? "messages"
      : "responses";
  const { text, tool, thought } = ANSWERS[language];
  const sent = request.json();
  const answer = request.text().includes("think first")
    ? thought
    : (sent.tools?.length ?? 0) > 0
      ? tool
      : text;
  return language === "responses" ? ofToday(answer) : answer;
};

const host = await startFakeHost((request) => {
  const { stream, input } = request.json();
  if (input?.at?.(-1)?.type === "compaction_trigger") return json(compacted());
  const { events, whole } = pick(request);
  return stream === true ? sse(events) : json(whole);
});
const model = (id: string) => `
  - id: test/${id}
    name: ${id}
    context_length: 100000
    max_output_tokens: 4000
    price: { input: 1, output: 10 }
    routes: [{ host: ${id}, model: host-model }]`;
const gateway = await open(`
hosts:
  - { id: chat, base_url: "${host.url}/v1", speaks: [chat.completions] }
  - { id: messages, base_url: "${host.url}/v1", speaks: [messages] }
  - { id: responses, base_url: "${host.url}/v1", speaks: [responses] }
models:${LANGUAGES.map(model).join("")}
`);
const key = (await gateway.key(10)).key;
afterAll(() => closeAll(gateway, host));

const item = (role: string, content: unknown, more: object = {}) => ({
  type: "message",
  role,
  content,
  ...more,
});
const WEATHER = {
  type: "function",
  name: "get_weather",
  description: "Get the current weather",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const REQUESTS: [string, object, string][] = [
  ["a text", { input: [item("user", "Say hello in three words.")] }, "message"],
  [
    "messages with phases",
    {
      input: [
        item("assistant", "I should answer.", { phase: "commentary" }),
        item("assistant", "Four.", { phase: "final_answer" }),
        item("user", "Repeat it."),
      ],
    },
    "message",
  ],
  [
    "a system prompt",
    { input: [item("system", "You are a pirate."), item("user", "Say hello.")] },
    "message",
  ],
  ["a tool", { input: [item("user", "What's the weather in Oslo?")], tools: [WEATHER] }, "function_call"],
  [
    "an image",
    {
      input: [
        item("user", [
          { type: "input_text", text: "What is this?" },
          { type: "input_image", image_url: PIXEL },
        ]),
      ],
    },
    "message",
  ],
  [
    "several turns",
    { input: [item("user", "I am Alice."), item("assistant", "Hello Alice!"), item("user", "Who am I?")] },
    "message",
  ],
  [
    "every setting",
    {
      input: "Think: think first",
      instructions: "Be brief.",
      max_output_tokens: 100,
      max_tool_calls: 3,
      metadata: { a: "b" },
      prompt_cache_key: "k",
      safety_identifier: "u",
      reasoning: { effort: "low", summary: "auto" },
      text: { verbosity: "low" },
      tool_choice: "auto",
      parallel_tool_calls: false,
      truncation: "auto",
      store: false,
    },
    "message",
  ],
  ["sampling", { input: "Hi", temperature: 0.5, store: false }, "message"],
];

const send = (language: Language, body: object, path = "/v1/responses") =>
  gateway.send("POST", path, { bearer: key, json: { model: `test/${language}`, ...body } });

interface Event {
  readonly type: string;
  readonly sequence_number: number;
  readonly response: {
    readonly usage: unknown;
    readonly completed_at: number | null;
    readonly output: readonly { readonly type: string }[];
  };
}

async function streamed(language: Language, body: object): Promise<Event[]> {
  const { status, text } = await send(language, { ...body, stream: true });
  expect([status, status === 200 ? "" : text]).toEqual([200, ""]);
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!));
}

/** Members of OpenAI's newest type that no specification asks for. */
const OWN = new Set(["access_programs"]);

describe.each(LANGUAGES)("Open Responses on a host of %s", (language) => {
  test.each(REQUESTS)("%s: the answer has every member that it must have", async (_, body, type) => {
    const { status, json: response, text } = await send(language, body);
    expect([status, status === 200 ? "" : text]).toEqual([200, ""]);
    expect(inResponse(response)).toEqual([]);
    expect(response.status).toBe("completed");
    expect(response.completed_at).toBeGreaterThan(0);
    expect(response.usage).not.toBeNull();
    expect(response.output.map((item: { type: string }) => item.type)).toContain(type);
  });

  test.each(REQUESTS)("%s, streamed: so has every event", async (_, body, type) => {
    const events = await streamed(language, body);
    for (const event of events) expect([event.type, inEvent(event)]).toEqual([event.type, []]);
    expect(events.map(({ sequence_number: at }) => at)).toEqual(events.map((_event, at) => at));
    for (const { response } of events.slice(0, 2))
      expect([response.usage, response.completed_at]).toEqual([null, null]);
    const last = events.at(-1)!;
    expect(last.type).toBe("response.completed");
    expect(last.response.completed_at).toBeGreaterThan(0);
    expect(last.response.output.map((item) => item.type)).toContain(type);
  });

  test("a conversation is shortened, and goes on from what came of it", async () => {
    const input = [item("user", "We launch on Tuesday."), item("assistant", "Understood.")];
    const body = { prompt_cache_key: "compact-test", input };
    const { status, json: compaction, headers } = await send(language, body, "/v1/responses/compact");
    expect(status).toBe(200);
    expect(inCompaction(compaction)).toEqual([]);
    expect(compaction.output.map((item: { type: string }) => item.type)).toContain("compaction");
    const receipt = await gateway.receipt({ headers }, key);
    expect(receipt.json).toMatchObject({ state: "settled", surface: "responses" });
    expect(receipt.json.cost_usd).toBeGreaterThan(0);

    const next = await send(language, { input: [...compaction.output, item("user", "When?")] });
    expect(next.status).toBe(200);
    expect(inResponse(next.json)).toEqual([]);
  });

  test("a conversation is shortened only for a model that is named, with an input", async () => {
    for (const [body, param] of [
      [{ input: [item("user", "Shorten it.")], model: undefined }, "model"],
      [{}, "input"],
    ] as const) {
      const { status, json: refusal } = await send(language, body, "/v1/responses/compact");
      expect([status, refusal.error.param]).toEqual([400, param]);
    }
    const keyless = await gateway.send("POST", "/v1/responses/compact", {
      json: { model: `test/${language}` },
    });
    expect([keyless.status, keyless.json.error.code]).toEqual([401, "missing_api_key"]);
  });
});

test("answers have the same members whatever the language of the host", async () => {
  const [first, ...others] = await Promise.all(LANGUAGES.map((language) => send(language, { input: "Hi" })));
  for (const { json: response } of others)
    expect(Object.keys(first!.json).filter((name) => !(name in response) && !OWN.has(name))).toEqual([]);
});
