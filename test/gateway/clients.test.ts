import { afterAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { json, sse, status } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { type Behaviour, type FakeRequest, startFakeHost } from "../fakes/host.ts";
import {
  chatText,
  chatToolCall,
  type HostAnswer,
  messagesText,
  messagesToolUse,
  responsesText,
  responsesToolCall,
} from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { violations } from "../surfaces/wire-schema.ts";
import { open } from "./open.ts";

/** The official clients, unmodified, against the gateway over its socket. */

const answering = (text: HostAnswer, tool: HostAnswer, request: FakeRequest): Behaviour => {
  const { tools, stream } = request.json();
  const { events, whole } = tools === undefined ? text : tool;
  return stream === true ? sse(events) : json(whole);
};

const host = await startFakeHost((request) => {
  if (request.text().includes("please fail")) return status(500);
  if (request.text().includes("tool_result")) return answering(messagesText(), messagesText(), request);
  if (request.text().includes("take your time")) {
    const { events } = request.path.endsWith("/messages") ? messagesText() : chatText();
    return sse(events, { before: (n) => (n === events.length - 2 ? request.gone : undefined) });
  }
  if (request.path.endsWith("/chat/completions")) return answering(chatText(), chatToolCall(), request);
  if (request.path.endsWith("/responses")) return answering(responsesText(), responsesToolCall(), request);
  return answering(messagesText(), messagesToolUse(), request);
});
const gateway = await open(`
hosts:
  - { id: h, base_url: "${host.url}/v1", speaks: [chat.completions, responses, messages] }
models:
  - id: test/model
    name: Test
    context_length: 100000
    max_output_tokens: 4000
    price: { input: 1, output: 10 }
    routes: [{ host: h, model: host-model }]
`);
afterAll(() => closeAll(gateway, host));

const openai = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
const anthropic = (apiKey: string) => new Anthropic({ apiKey, baseURL: gateway.url, maxRetries: 0 });
const messages = (content: string) => [{ role: "user" as const, content }];
const WEATHER = { type: "object" as const, properties: { city: { type: "string" } } };

/** What was held is given back a moment after the client has its answer. */
const nothingHeld = (key: string) =>
  until(async () => (await gateway.send("GET", "/v1/me", { bearer: key })).json.held_usd === 0);

describe("the openai package", () => {
  test("chat completions: plain, streamed with usage, tool call", async () => {
    const { key } = await gateway.key(1);
    const client = openai(key);
    const plain = await client.chat.completions.create({ model: "test/model", messages: messages("Hi") });
    expect(plain.model).toBe("test/model");
    expect(plain.choices[0]!.message.content).toContain("Hello");

    let text = "";
    let usage = null;
    const stream = await client.chat.completions.create({
      model: "test/model",
      messages: messages("Hi"),
      stream: true,
      stream_options: { include_usage: true },
    });
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    expect(text).toContain("Hello");
    expect(usage).not.toBeNull();

    const called = await client.chat.completions
      .stream({
        model: "test/model",
        messages: messages("Weather?"),
        tools: [{ type: "function", function: { name: "get_weather", parameters: WEATHER } }],
      })
      .finalChatCompletion();
    const [call] = called.choices[0]!.message.tool_calls!;
    expect(call!.type === "function" && JSON.parse(call!.function.arguments)).toEqual({ city: "Oslo" });
    await nothingHeld(key);
  });

  test("usage is withheld from a stream that did not ask for it", async () => {
    const { key } = await gateway.key(1);
    const stream = await openai(key).chat.completions.create({
      model: "test/model",
      messages: messages("Hi"),
      stream: true,
    });
    for await (const chunk of stream) {
      expect("usage" in chunk).toBe(false);
      expect(chunk.choices.length).toBe(1);
    }
    expect(host.requests.at(-1)!.json().stream_options).toEqual({ include_usage: true });
  });

  test("responses: plain, streamed, tool call", async () => {
    const { key } = await gateway.key(1);
    const client = openai(key);
    const plain = await client.responses.create({ model: "test/model", input: "Hi" });
    expect(plain.output_text).toContain("Hello");
    expect(plain.model).toBe("test/model");
    const types: string[] = [];
    for await (const event of await client.responses.create({
      model: "test/model",
      input: "Hi",
      stream: true,
    })) {
      types.push(event.type);
    }
    expect(types[0]).toBe("response.created");
    expect(types.at(-1)).toBe("response.completed");
    const called = await client.responses.create({
      model: "test/model",
      input: "Weather?",
      tools: [{ type: "function", name: "get_weather", parameters: WEATHER, strict: false }],
    });
    expect(called.output.some(({ type }) => type === "function_call")).toBe(true);
  });

  test("models.list and models.retrieve", async () => {
    const { key } = await gateway.key(0);
    const list = await openai(key).models.list();
    expect(list.data.map(({ id }) => id)).toEqual(["test/model"]);
  });

  test.each([
    [
      "401",
      async (): Promise<string> => "or-live-11111111111111111111111111111111",
      "test/model",
      "Hi",
      OpenAI.AuthenticationError,
      "invalid_api_key",
    ],
    [
      "402",
      async (): Promise<string> => (await gateway.key(0)).key,
      "test/model",
      "Hi",
      OpenAI.APIError,
      "insufficient_credit",
    ],
    [
      "404",
      async (): Promise<string> => (await gateway.key(1)).key,
      "test/modle",
      "Hi",
      OpenAI.NotFoundError,
      "unknown_model",
    ],
    [
      "429",
      async (): Promise<string> => (await gateway.key(1, { tpm_limit: 10 })).key,
      "test/model",
      "Hi",
      OpenAI.RateLimitError,
      "rate_limited",
    ],
    [
      "503",
      async (): Promise<string> => (await gateway.key(1)).key,
      "test/model",
      "please fail",
      OpenAI.InternalServerError,
      "model_unavailable",
    ],
  ] as const)(
    "%s is its own class of error, with the code",
    async (http, keyOf, model, content, kind, code): Promise<void> => {
      const error: unknown = await openai(await keyOf())
        .chat.completions.create({ model, messages: messages(content) })
        .then(
          () => null,
          (thrown: unknown) => thrown,
        );
      expect(error).toBeInstanceOf(kind);
      expect(error).toMatchObject({ status: Number(http), code });
      expect((error as InstanceType<typeof OpenAI.APIError>).requestID).toStartWith("rcpt_");
    },
  );

  test("a stream that is aborted is stopped at the host, and its hold is settled", async () => {
    const { key } = await gateway.key(1);
    const before = host.requests.length;
    const stream = await openai(key).chat.completions.create({
      model: "test/model",
      messages: messages("take your time"),
      stream: true,
    });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    await (await host.arrived(before)).gone;
    await nothingHeld(key);
  });
});

describe("the @anthropic-ai/sdk package", () => {
  test("messages: plain, streamed, tool use", async () => {
    const { key } = await gateway.key(1);
    const client = anthropic(key);
    const plain = await client.messages.create({
      model: "test/model",
      max_tokens: 50,
      messages: messages("Hi"),
    });
    expect(plain.model).toBe("test/model");
    expect(plain.content[0]).toMatchObject({ type: "text", text: expect.stringContaining("Hello") });
    const streamed = await client.messages
      .stream({ model: "test/model", max_tokens: 50, messages: messages("Hi") })
      .finalMessage();
    expect(streamed.content[0]).toMatchObject({ ...plain.content[0] });
    const used = await client.messages
      .stream({
        model: "test/model",
        max_tokens: 50,
        messages: messages("Weather?"),
        tools: [{ name: "get_weather", input_schema: WEATHER }],
      })
      .finalMessage();
    expect(used.content.find(({ type }) => type === "tool_use")).toMatchObject({ input: { city: "Oslo" } });
  });

  test("the tool runner, which asks the host to keep a thread, goes on without one", async () => {
    const client = anthropic((await gateway.key(1)).key);
    const before = host.requests.length;
    const answer = await client.beta.messages.toolRunner({
      model: "test/model",
      max_tokens: 50,
      messages: messages("Weather?"),
      tools: [
        { type: "custom", name: "get_weather", input_schema: WEATHER, run: () => "sunny", parse: String },
      ],
    });
    expect(answer.content[0]).toMatchObject({ type: "text", text: expect.stringContaining("Hello") });
    const bodies = host.requests.slice(before).map((request) => request.json());
    expect(bodies.map(({ messages }) => messages.length)).toEqual([1, 3]);
    for (const body of bodies) expect(body).not.toHaveProperty("thread");
  });

  test("a thread that is named is refused, as a conversation that is kept nowhere", async () => {
    const { key } = await gateway.key(1);
    const thread = { type: "continue", previous_message_id: "msg_1" };
    const json = { model: "test/model", max_tokens: 9, messages: messages("Hi"), thread };
    const refusal = await gateway.send("POST", "/v1/messages", { bearer: key, json });
    expect([refusal.status, refusal.json.error.code, refusal.json.error.param]).toEqual([
      400,
      "invalid_request",
      "thread",
    ]);
  });

  test("the headers that say how the body is meant reach the host, and credentials do not", async () => {
    const { key } = await gateway.key(1);
    await anthropic(key).messages.create(
      { model: "test/model", max_tokens: 50, messages: messages("Hi") },
      { headers: { "anthropic-beta": "some-beta-2026-01-01", cookie: "a=b", "x-forwarded-for": "10.1.2.3" } },
    );
    const { headers } = host.requests.at(-1)!;
    expect(headers["anthropic-version"]).toMatch(/^\d{4}-\d{2}-\d{2}$/);
    expect(headers["anthropic-beta"]).toBe("some-beta-2026-01-01");
    for (const name of ["cookie", "x-forwarded-for", "x-api-key", "authorization"])
      expect(headers[name]).toBeUndefined();
  });

  test("models.list and count_tokens", async () => {
    const { key } = await gateway.key(0);
    const models = await anthropic(key).models.list();
    expect(models.data.map(({ id }) => id)).toEqual(["test/model"]);
    const counted = await anthropic(key).messages.countTokens({
      model: "test/model",
      messages: messages("Hello there, gateway"),
    });
    expect(counted.input_tokens).toBeGreaterThan(3);
    expect(counted.input_tokens).toBeLessThan(30);
  });

  test.each([
    [
      "401",
      async (): Promise<string> => "or-live-11111111111111111111111111111111",
      "Hi",
      Anthropic.AuthenticationError,
    ],
    ["402", async (): Promise<string> => (await gateway.key(0)).key, "Hi", Anthropic.APIError],
    [
      "429",
      async (): Promise<string> => (await gateway.key(1, { tpm_limit: 10 })).key,
      "Hi",
      Anthropic.RateLimitError,
    ],
    [
      "503",
      async (): Promise<string> => (await gateway.key(1)).key,
      "please fail",
      Anthropic.InternalServerError,
    ],
  ] as const)("%s is its own class of error", async (http, keyOf, content, kind): Promise<void> => {
    const error: unknown = await anthropic(await keyOf())
      .messages.create({ model: "test/model", max_tokens: 50, messages: messages(content) })
      .then(
        () => null,
        (thrown: unknown) => thrown,
      );
    expect(error).toBeInstanceOf(kind);
    expect(error).toMatchObject({ status: Number(http), error: { type: "error" } });
    expect((error as InstanceType<typeof Anthropic.APIError>).requestID).toStartWith("rcpt_");
  });

  test("a stream that is aborted is stopped at the host, and its hold is settled", async () => {
    const { key } = await gateway.key(1);
    const before = host.requests.length;
    const stream = anthropic(key).messages.stream({
      model: "test/model",
      max_tokens: 50,
      messages: messages("take your time"),
    });
    await new Promise((resolve) => stream.once("text", resolve));
    stream.abort();
    await stream.done().catch(() => null);
    await (await host.arrived(before)).gone;
    await nothingHeld(key);
  });
});

test("a model has every member that either package publishes", async () => {
  const { key } = await gateway.key(0);
  const listed = (await gateway.send("GET", "/v1/models", { bearer: key })).json.data[0];
  const { json: alone } = await gateway.send("GET", "/v1/models/test/model", { bearer: key });
  for (const model of [listed, alone]) {
    expect(violations("openAiModel", model)).toEqual([]);
    expect(violations("anthropicModel", model)).toEqual([]);
    expect(model).toMatchObject({ lifecycle: "active", max_input_tokens: 100_000, max_tokens: 4_000 });
  }
});
