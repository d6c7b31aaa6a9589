import { afterAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import { ANTHROPIC_MESSAGES } from "../../fakes/hosts/anthropic-messages.ts";
import { COMPATIBLE_CHAT } from "../../fakes/hosts/compatible-chat.ts";
import { OPENAI_RESPONSES } from "../../fakes/hosts/openai-responses.ts";
import type { Transcript } from "../../fakes/hosts/transcript.ts";
import type { Loose } from "../../surfaces/event-order.ts";
import { TestGateway } from "./test-gateway.ts";

/**
 * Thoughts come with a signature, or encrypted, by which their host recognises them. A client of any language
 * sends back what it was given; the host that had the thoughts gets them exactly, and no other host gets any
 * of it.
 */
const deps = await TestGateway.open();
afterAll(() => deps.close());

const ANSWERS: Readonly<Record<SurfaceName, Transcript>> = {
  "chat.completions": COMPATIBLE_CHAT["OpenRouter: comments, signed thoughts, usage next to an empty choice"],
  responses: OPENAI_RESPONSES["thoughts in two paragraphs, words, two calls at once"],
  messages: ANTHROPIC_MESSAGES["thoughts, hidden thoughts, words, two calls at once"],
};

/** What only the host that wrote it can read. */
const SECRETS = ["EqQBCgIYAhIM1gbcDa9GJwZA2b3h", "EmwKAhgBEgy3va3pzix", "gAAAAABpDxsDaUg", "gwseal"];

/** Asks, then asks again with the answer and results for its calls behind it. */
type Conversation = (first: string, second: string, stream: boolean, stored?: boolean) => Promise<unknown>;

const CONVERSATIONS: Readonly<Record<SurfaceName, Conversation>> = {
  "chat.completions": async (first, second) => {
    const { chat } = new OpenAI({ apiKey: deps.key, baseURL: `${deps.url}/v1`, maxRetries: 0 });
    const messages: Loose[] = [{ role: "user", content: "How warm is it?" }];
    const body = { messages, max_tokens: 21_000, reasoning_effort: "high" as const, tools: [TOOL.chat] };
    const answer = await chat.completions.create({ ...body, model: first });
    const { message } = answer.choices[0]!;
    messages.push(message);
    for (const { id } of message.tool_calls ?? [])
      messages.push({ role: "tool", tool_call_id: id, content: "4 °C" });
    if (message.tool_calls === undefined) messages.push({ role: "user", content: "Sure?" });
    return chat.completions.create({ ...body, model: second });
  },
  responses: async (first, second, stream, stored = false) => {
    const { responses } = new OpenAI({ apiKey: deps.key, baseURL: `${deps.url}/v1`, maxRetries: 0 });
    const input: Loose[] = [{ role: "user", content: "How warm is it?" }];
    const body = {
      input,
      max_output_tokens: 21_000,
      reasoning: { effort: "high" as const, summary: "auto" as const },
      tools: [TOOL.responses],
      ...believing(stored),
    };
    const { output } = stream
      ? await responses.stream({ ...body, model: first }).finalResponse()
      : await responses.create({ ...body, model: first });
    input.push(...output);
    const calls: Loose[] = output.filter(({ type }) => type === "function_call");
    for (const { call_id } of calls) input.push({ type: "function_call_output", call_id, output: "4 °C" });
    if (calls.length === 0) input.push({ role: "user", content: "Sure?" });
    return responses.create({ ...body, model: second });
  },
  messages: async (first, second, stream) => {
    const client = new Anthropic({ apiKey: deps.key, baseURL: deps.url, maxRetries: 0 });
    const messages: Anthropic.MessageParam[] = [{ role: "user", content: "How warm is it?" }];
    const thinking = { type: "enabled" as const, budget_tokens: 16_000 };
    const body = { messages, max_tokens: 21_000, thinking, tools: [TOOL.messages] };
    const { content } = stream
      ? await client.messages.stream({ ...body, model: first }).finalMessage()
      : await client.messages.create({ ...body, model: first });
    messages.push({ role: "assistant", content });
    const calls = content.filter((block) => block.type === "tool_use");
    messages.push({
      role: "user",
      content:
        calls.length === 0
          ? "Sure?"
          : calls.map(({ id }) => ({ type: "tool_result" as const, tool_use_id: id, content: "4 °C" })),
    });
    return client.messages.create({ ...body, model: second });
  },
};

/**
 * Knows nothing of encrypted thoughts, as OpenAI's Agents SDK by default: it believes that items are kept by
 * their ids.
 */
const believing = (stored: boolean) =>
  stored ? {} : { include: ["reasoning.encrypted_content" as const], store: false };

const SCHEMA = { type: "object" as const, properties: { city: { type: "string" } } };
const TOOL = {
  chat: { type: "function" as const, function: { name: "get_weather", parameters: SCHEMA } },
  responses: { type: "function" as const, name: "get_weather", parameters: SCHEMA, strict: false },
  messages: { name: "get_weather", input_schema: SCHEMA },
};

/** The thoughts as their host gave them. */
const RETURNED: Readonly<Record<SurfaceName, (body: Loose) => void>> = {
  "chat.completions": ({ messages }) => {
    // Collected from a stream they are still in pieces, as OpenRouter takes them too.
    const details = messages[1].reasoning_details as Loose[];
    expect(details.map(({ text }) => text ?? "").join("")).toBe("They want a number.");
    expect(details.flatMap(({ signature }) => signature ?? [])).toEqual([SECRETS[0]]);
  },
  responses: ({ input }) => {
    expect(input[1]).toMatchObject({
      type: "reasoning",
      id: "rs_0c2e8a3f9a1d6c7f02",
      encrypted_content: SECRETS[2],
    });
    expect(input[1].summary.map(({ text }: Loose) => text).join("\n\n")).toBe(
      "**Looking up weather**\n\n**Comparing**",
    );
  },
  messages: ({ messages }) => {
    const { content } = messages[1];
    expect(content.slice(0, 2)).toEqual([
      { type: "thinking", thinking: "They want the weather.", signature: SECRETS[0] },
      { type: "redacted_thinking", data: "EmwKAhgBEgy3va3pzix/LafPsn4a" },
    ]);
    expect(content.slice(2).map(({ type }: Loose) => type)).toEqual(["text", "tool_use", "tool_use"]);
  },
};

describe.each(SURFACE_NAMES.flatMap((client) => SURFACE_NAMES.map((host) => [client, host] as const)))(
  "%s client, thoughts of a %s host",
  (client, host) => {
    test.each([
      [false, "model"],
      [true, "model"],
      [true, "whole"],
    ])("come back to it as they were, streamed: %p, by %s", async (stream, served) => {
      deps.answers = [ANSWERS[host]];
      await CONVERSATIONS[client](`${host}/${served}`, `${host}/${served}`, stream);
      RETURNED[host](client === host ? deps.sent() : deps.translated(host));
      if (client !== host) expect(JSON.stringify(deps.sent())).not.toContain("gwseal");
    });

    test.each(SURFACE_NAMES.filter((other) => other !== host))("are not for a %s host", async (other) => {
      deps.answers = [ANSWERS[host], ANSWERS[other]];
      await CONVERSATIONS[client](`${host}/model`, `${other}/model`, false);
      const sent = JSON.stringify(client === other ? deps.sent() : deps.translated(other));
      for (const secret of SECRETS) expect(sent).not.toContain(secret);
      expect(sent).toContain("How warm is it?");
    });
  },
);

test.each(SURFACE_NAMES)(
  "a client that believes in stored items has thoughts of a %s host too",
  async (host) => {
    deps.answers = [ANSWERS[host]];
    await CONVERSATIONS.responses(`${host}/model`, `${host}/model`, true, true);
    RETURNED[host](deps.sent());
    if (host === "responses") expect(deps.sent(2).include).toEqual(["reasoning.encrypted_content"]);
  },
);
