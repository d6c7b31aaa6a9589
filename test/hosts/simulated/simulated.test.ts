import { afterAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { SIMULATED_LIMITS, startSimulatedHost } from "../../../src/hosts/simulated/host.ts";
import { systemClock } from "../../../src/units/clock.ts";
import { systemRandom } from "../../../src/units/random.ts";
import { inEvent, inResponse } from "../../gateway/open-responses-schema.ts";

const host = startSimulatedHost({ clock: systemClock, random: systemRandom, paceMs: 0 });
afterAll(() => host.stop());

const openai = new OpenAI({ apiKey: "unused", baseURL: host.url, maxRetries: 0 });
const anthropic = new Anthropic({
  apiKey: "unused",
  baseURL: host.url.slice(0, -"/v1".length),
  maxRetries: 0,
});

const GREETING = "Hello from the simulated host! You said: ";
const TEXT = "Grüße, 👋🏽 world";
const messages = [{ role: "user" as const, content: TEXT }];

/** Words of at most sixteen characters: six of the greeting, then the caller's. */
const wordsOf = (text: string): number => text.match(/\s*\S{1,16}|\s+$/gu)?.length ?? 0;

describe("chat completions, by OpenAI's client", () => {
  test("a whole answer echoes the last words, with true usage", async () => {
    const reply = await openai.chat.completions.create({ model: "echo", messages });
    expect(reply.object).toBe("chat.completion");
    expect(reply.choices[0]?.message.content).toBe(GREETING + TEXT);
    expect(reply.choices[0]?.finish_reason).toBe("stop");
    const output = wordsOf(GREETING + TEXT);
    expect(reply.usage).toMatchObject({
      prompt_tokens: wordsOf(TEXT),
      completion_tokens: output,
      total_tokens: wordsOf(TEXT) + output,
    });
  });

  test("a stream gives the same words one by one, and ends", async () => {
    const stream = await openai.chat.completions.create({
      model: "echo",
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await Array.fromAsync(stream);
    const deltas = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").filter((text) => text !== "");
    expect(deltas.join("")).toBe(GREETING + TEXT);
    expect(deltas.length).toBe(wordsOf(GREETING + TEXT));
    expect(chunks[0]?.choices[0]?.delta.role).toBe("assistant");
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe("stop");
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: deltas.length } });
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
  });

  test("usage that was not asked for is not sent; the bytes end in [DONE]", async () => {
    const text = await raw("/chat/completions", { model: "echo", messages, stream: true });
    expect(text).toEndWith("data: [DONE]\n\n");
    expect(text).not.toContain("usage");
    expect(text).not.toContain("\r");
  });

  test("a forced tool is called with arguments that its schema allows", async () => {
    const tools = [{ type: "function" as const, function: { name: "get_weather", parameters: SCHEMA } }];
    const tool_choice = { type: "function" as const, function: { name: "get_weather" } };
    const reply = await openai.chat.completions.create({ model: "echo", messages, tools, tool_choice });
    const call = reply.choices[0]?.message.tool_calls?.[0];
    expect(reply.choices[0]?.finish_reason).toBe("tool_calls");
    expect(call?.type === "function" && call.function.name).toBe("get_weather");
    expect(JSON.parse(call?.type === "function" ? call.function.arguments : "")).toEqual(SAMPLE);

    const stream = openai.chat.completions.stream({
      model: "echo",
      messages,
      tools,
      tool_choice: "required",
    });
    const streamed = (await stream.finalChatCompletion()).choices[0]?.message.tool_calls?.[0];
    expect(JSON.parse(streamed?.type === "function" ? streamed.function.arguments : "")).toEqual(SAMPLE);
  });

  test("a tool that is merely offered is not called", async () => {
    const tools = [{ type: "function" as const, function: { name: "get_weather", parameters: SCHEMA } }];
    const reply = await openai.chat.completions.create({
      model: "echo",
      messages,
      tools,
      tool_choice: "auto",
    });
    expect(reply.choices[0]?.message.tool_calls).toBeUndefined();
  });

  test.each(["max_tokens", "max_completion_tokens"])("%s ends the answer", async (field) => {
    const reply = await openai.chat.completions.create({ model: "echo", messages, [field]: 3 } as never);
    const { choices, usage } = reply as OpenAI.ChatCompletion;
    expect(choices[0]?.message.content).toBe("Hello from the");
    expect(choices[0]?.finish_reason).toBe("length");
    expect(usage?.completion_tokens).toBe(3);
  });
});

describe("responses, by OpenAI's client", () => {
  test("answers and events have every member that Open Responses asks for", async () => {
    for (const more of [{}, { max_output_tokens: 2 }]) {
      const body = { model: "echo", input: TEXT, ...more };
      expect(inResponse(JSON.parse(await raw("/responses", body)))).toEqual([]);
      const stream = await openai.responses.create({ ...body, stream: true });
      for await (const event of stream) expect([event.type, inEvent(event)]).toEqual([event.type, []]);
    }
  });

  test("a whole answer", async () => {
    const reply = await openai.responses.create({ model: "echo", input: TEXT });
    expect(reply.output_text).toBe(GREETING + TEXT);
    expect(reply.status).toBe("completed");
    expect(reply.usage).toMatchObject({
      input_tokens: wordsOf(TEXT),
      output_tokens: wordsOf(GREETING + TEXT),
    });
  });

  test("a stream has the whole sequence of events, numbered", async () => {
    const stream = await openai.responses.create({ model: "echo", input: messages, stream: true });
    const events = await Array.fromAsync(stream);
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
    const types = events.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1]);
    expect(types).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
    const last = events.at(-1);
    expect(last?.type === "response.completed" && last.response.output).toMatchObject([
      { type: "message", status: "completed", content: [{ type: "output_text", text: GREETING + TEXT }] },
    ]);
  });

  test("a forced function, whole and streamed", async () => {
    const tools = [{ type: "function" as const, name: "get_weather", parameters: SCHEMA, strict: true }];
    const tool_choice = { type: "function" as const, name: "get_weather" };
    const reply = await openai.responses.create({ model: "echo", input: TEXT, tools, tool_choice });
    const [call] = reply.output;
    expect(JSON.parse(call?.type === "function_call" ? call.arguments : "")).toEqual(SAMPLE);

    const stream = openai.responses.stream({ model: "echo", input: TEXT, tools, tool_choice });
    const [streamed] = (await stream.finalResponse()).output;
    expect(JSON.parse(streamed?.type === "function_call" ? streamed.arguments : "")).toEqual(SAMPLE);
  });

  test("a forced freeform tool comes back as one, with free text", async () => {
    const stream = await openai.responses.create({
      model: "echo",
      input: TEXT,
      tools: [{ type: "custom", name: "apply_patch" }],
      tool_choice: { type: "custom", name: "apply_patch" },
      stream: true,
    });
    const events = await Array.fromAsync(stream);
    const done = events.find((event) => event.type === "response.output_item.done");
    expect(done?.item).toMatchObject({ type: "custom_tool_call", name: "apply_patch", input: TEXT });
  });

  test("the ceiling makes it incomplete, and says why", async () => {
    const reply = await openai.responses.create({ model: "echo", input: TEXT, max_output_tokens: 2 });
    expect([reply.status, reply.incomplete_details?.reason]).toEqual(["incomplete", "max_output_tokens"]);
    expect(
      await raw("/responses", { model: "echo", input: TEXT, max_output_tokens: 2, stream: true }),
    ).toContain("event: response.incomplete\n");
  });

  test("a tool's output is the last thing said", async () => {
    const input = [
      { role: "user" as const, content: "what is the weather?" },
      { type: "function_call" as const, call_id: "c", name: "get_weather", arguments: "{}" },
      { type: "function_call_output" as const, call_id: "c", output: "sunny" },
    ];
    expect((await openai.responses.create({ model: "echo", input })).output_text).toBe(`${GREETING}sunny`);
  });
});

describe("messages, by Anthropic's client", () => {
  const request = { model: "echo", max_tokens: 100, messages };

  test("a whole answer", async () => {
    const reply = await anthropic.messages.create({ ...request, system: "be brief" });
    expect(reply.content).toMatchObject([{ type: "text", text: GREETING + TEXT }]);
    expect(reply.stop_reason).toBe("end_turn");
    expect(reply.usage).toMatchObject({
      input_tokens: wordsOf("be brief") + wordsOf(TEXT),
      output_tokens: wordsOf(GREETING + TEXT),
    });
  });

  test("an agent's instructions before and behind the user's words are not repeated", async () => {
    const reminded = [
      {
        role: "user" as const,
        content: [
          { type: "text" as const, text: "<system-reminder>Be brief.</system-reminder>" },
          { type: "text" as const, text: TEXT },
        ],
      },
      { role: "system" as const, content: "Available agents: none." },
    ];
    const text = await raw("/messages", { ...request, messages: reminded });
    expect(JSON.parse(text).content).toMatchObject([{ type: "text", text: GREETING + TEXT }]);
  });

  test("a stream has the whole sequence of events", async () => {
    const text = await raw("/messages", { ...request, stream: true });
    const names = [...text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name!);
    expect(names.filter((name, index) => name !== names[index - 1])).toEqual([
      "message_start",
      "content_block_start",
      "ping",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    const reply = await anthropic.messages.stream(request).finalMessage();
    expect(reply.content).toMatchObject([{ type: "text", text: GREETING + TEXT }]);
    expect(reply.usage.output_tokens).toBe(wordsOf(GREETING + TEXT));
  });

  test("a forced tool, whole and streamed", async () => {
    const tools = [{ name: "get_weather", input_schema: SCHEMA }];
    const forced = { ...request, tools, tool_choice: { type: "tool" as const, name: "get_weather" } };
    for (const reply of [
      await anthropic.messages.create(forced),
      await anthropic.messages.stream(forced).finalMessage(),
    ]) {
      expect(reply.stop_reason).toBe("tool_use");
      expect(reply.content).toMatchObject([{ type: "tool_use", name: "get_weather", input: SAMPLE }]);
    }
  });

  test("the ceiling ends the answer", async () => {
    const reply = await anthropic.messages.create({ ...request, max_tokens: 1 });
    expect([reply.stop_reason, reply.usage.output_tokens]).toEqual(["max_tokens", 1]);
  });

  test("max_tokens is required, as the language says", async () => {
    const { max_tokens, ...rest } = request;
    const error = await anthropic.messages.create(rest as never).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(Anthropic.BadRequestError);
  });
});

describe("requests that are wrong", () => {
  test.each([
    ["a model that is not there", "/chat/completions", { model: "gpt-4o", messages }, 404],
    ["no messages", "/chat/completions", { model: "echo", messages: [] }, 400],
    ["two choices", "/chat/completions", { model: "echo", messages, n: 2 }, 400],
    ["no input", "/responses", { model: "echo", input: [] }, 400],
    [
      "a response that was never kept",
      "/responses",
      { model: "echo", input: "x", previous_response_id: "r" },
      400,
    ],
    ["a list for a body", "/chat/completions", [], 400],
    ["another endpoint", "/embeddings", { model: "echo" }, 404],
    ["a null for a message", "/chat/completions", { model: "echo", messages: [null] }, 400],
    ["a schema deeper than any tool has", "/messages", bottomless(), 200],
  ])("%s", async (_what, path, body, status) => {
    const reply = await post(path, JSON.stringify(body));
    expect(reply.status).toBe(status);
    await reply.text();
  });

  test("a body that is no JSON", async () => {
    const reply = await post("/messages", "{");
    expect(reply.status).toBe(400);
    expect(await reply.json()).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
  });
});

test("an answer never exceeds the model's own ceiling, nor splits a character", async () => {
  const long = "👩‍👩‍👧‍👦é".repeat(40_000);
  const reply = await openai.chat.completions.create({
    model: "echo",
    messages: [{ role: "user", content: long }],
  });
  expect(reply.usage?.completion_tokens).toBe(SIMULATED_LIMITS.maxOutputTokens);
  expect(reply.choices[0]?.finish_reason).toBe("length");
  expect(reply.choices[0]?.message.content?.isWellFormed()).toBe(true);
});

test("words are paced by the clock, and a caller who leaves is not talked to any longer", async () => {
  const requests: number[] = [];
  const clock = {
    ...systemClock,
    after: (ms: number, fire: () => void) => {
      requests.push(ms);
      return systemClock.after(0, fire);
    },
  };
  const paced = startSimulatedHost({ clock, random: systemRandom, paceMs: 7 });
  const body = JSON.stringify({
    model: "echo",
    messages: [{ role: "user", content: "a ".repeat(50_000) }],
    stream: true,
  });
  const reply = await fetch(`${paced.url}/chat/completions`, { method: "POST", body });
  const reader = reply.body!.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toContain("Hello");
  await reader.cancel();
  await paced.stop();
  expect(requests[0]).toBe(7);
  expect(requests.length).toBeLessThan(SIMULATED_LIMITS.maxOutputTokens);
});

test("it listens on the loopback interface only", () => {
  expect(host.url).toStartWith("http://127.0.0.1:");
});

const SCHEMA = {
  type: "object" as const,
  properties: {
    city: { type: "string" },
    unit: { enum: ["celsius", "fahrenheit"] },
    days: { type: "integer", minimum: 1 },
    detailed: { type: "boolean" },
    cities: { type: "array", items: { type: "string" } },
    at: { type: "object", properties: { lat: { type: ["number", "null"] } }, required: ["lat"] },
    optional: { type: "string" },
  },
  required: ["city", "unit", "days", "detailed", "cities", "at"],
  additionalProperties: false,
};
const SAMPLE = { city: TEXT, unit: "celsius", days: 1, detailed: false, cities: [], at: { lat: 0 } };

function bottomless(): object {
  let schema: object = { type: "string" };
  for (let depth = 0; depth < 50; depth++)
    schema = { type: "object", properties: { a: schema }, required: ["a"] };
  const tools = [{ name: "t", input_schema: schema }];
  return { model: "echo", max_tokens: 10, messages, tools, tool_choice: { type: "any" } };
}

const post = (path: string, body: string) => fetch(host.url + path, { method: "POST", body });

async function raw(path: string, body: object): Promise<string> {
  return (await post(path, JSON.stringify(body))).text();
}
