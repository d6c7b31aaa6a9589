import { afterEach, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { json, rateLimited, sse } from "../fakes/behaviours.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import {
  chatReasoning,
  chatText,
  chatToolCall,
  type HostAnswer,
  messagesError,
  messagesText,
  messagesThinking,
  messagesToolUse,
  responsesCustomToolCall,
  responsesError,
  responsesReasoning,
  responsesText,
  responsesToolCall,
} from "../fakes/transcripts.ts";

/**
 * The fakes are worth what the providers' own clients make of them: a stream must add up to the whole answer.
 */
let host: FakeHost;
afterEach(() => host.close());

async function serve(answer: HostAnswer): Promise<void> {
  host = await startFakeHost((request) =>
    request.json().stream === true ? sse(answer.events) : json(answer.whole),
  );
}

const openai = (): OpenAI => new OpenAI({ baseURL: `${host.url}/v1`, apiKey: "fake", maxRetries: 0 });
const anthropic = (): Anthropic => new Anthropic({ baseURL: host.url, apiKey: "fake", maxRetries: 0 });

const CHAT = { model: "fake", messages: [{ role: "user" as const, content: "hi" }] };
const RESPONSES = { model: "fake", input: "hi" };
const MESSAGES = { ...CHAT, max_tokens: 100 };

describe("chat completions add up", () => {
  for (const [what, answer] of Object.entries({
    text: chatText(["Hel", "lo"], { input: 20, cached: 8 }),
    "a tool call": chatToolCall(),
    reasoning: chatReasoning(),
  })) {
    test(what, async () => {
      await serve(answer);
      const whole = await openai().chat.completions.create(CHAT);
      const stream = openai().chat.completions.stream({ ...CHAT, stream_options: { include_usage: true } });
      const added = await stream.finalChatCompletion();
      expect(added.choices[0]!.finish_reason).toBe(whole.choices[0]!.finish_reason);
      expect(added.choices[0]!.message.content).toEqual(whole.choices[0]!.message.content);
      expect(callsOf(added)).toEqual(callsOf(whole));
      expect(await stream.totalUsage()).toMatchObject({ total_tokens: whole.usage!.total_tokens });
    });
  }
});

const callsOf = ({ choices }: OpenAI.ChatCompletion): unknown =>
  choices[0]!.message.tool_calls?.map((call) =>
    call.type === "function" ? [call.id, call.function.name, call.function.arguments] : [],
  );

describe("responses add up", () => {
  for (const [what, answer] of Object.entries({
    text: responsesText(["Hel", "lo"]),
    "a function call": responsesToolCall(),
    "a custom tool call": responsesCustomToolCall(),
    reasoning: responsesReasoning(),
  })) {
    test(what, async () => {
      await serve(answer);
      const whole = await openai().responses.create(RESPONSES);
      const numbers: number[] = [];
      const items: unknown[] = [];
      let text = "";
      let last: unknown = null;
      for await (const event of await openai().responses.create({ ...RESPONSES, stream: true })) {
        numbers.push(event.sequence_number);
        if (event.type === "response.output_item.done") items.push(event.item);
        if (event.type === "response.output_text.delta") text += event.delta;
        if (event.type === "response.completed") last = event.response;
      }
      expect(numbers).toEqual(numbers.map((_, n) => n));
      expect(items).toEqual(whole.output);
      expect(text).toBe(whole.output_text);
      expect(last).toMatchObject({ status: "completed", usage: whole.usage });
    });
  }
});

describe("messages add up", () => {
  for (const [what, answer] of Object.entries({
    text: messagesText(["Hel", "lo"], { input: 20, cached: 8, cacheWrite: 4 }),
    "a tool use": messagesToolUse(),
    thinking: messagesThinking(),
  })) {
    test(what, async () => {
      await serve(answer);
      const whole = await anthropic().messages.create(MESSAGES);
      const added = await anthropic().messages.stream(MESSAGES).finalMessage();
      expect(added.content).toMatchObject(whole.content);
      expect([added.stop_reason, added.usage]).toEqual([whole.stop_reason, whole.usage]);
    });
  }
});

describe("the clients take failures for failures", () => {
  test("an error inside a messages stream", async () => {
    host = await startFakeHost(() => sse([...messagesText().events.slice(0, 4), messagesError()]));
    await expect(anthropic().messages.stream(MESSAGES).finalMessage()).rejects.toThrow("Overloaded");
  });

  test("a failed response", async () => {
    host = await startFakeHost(() => sse(responsesError("broken")));
    const read = async (): Promise<void> => {
      for await (const _event of await openai().responses.create({ ...RESPONSES, stream: true }));
    };
    await expect(read()).rejects.toThrow("broken");
  });

  test("a rate limit, with its Retry-After", async () => {
    host = await startFakeHost(() => rateLimited(7));
    const refused = await openai()
      .chat.completions.create(CHAT)
      .catch((error) => error);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "7"]);
  });
});
