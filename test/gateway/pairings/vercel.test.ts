import { afterAll, describe, expect, test } from "bun:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, jsonSchema, type LanguageModel, Output, streamText, tool } from "ai";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import { ANTHROPIC_MESSAGES } from "../../fakes/hosts/anthropic-messages.ts";
import { OPENAI_CHAT } from "../../fakes/hosts/openai-chat.ts";
import { OPENAI_RESPONSES } from "../../fakes/hosts/openai-responses.ts";
import type { Transcript } from "../../fakes/hosts/transcript.ts";
import { TestGateway } from "./test-gateway.ts";

/** Vercel's AI SDK, whose every provider speaks to hosts of all three languages. */
const deps = await TestGateway.open();
afterAll(() => deps.close());

const SPEAKS: Readonly<Record<string, SurfaceName>> = {
  "@ai-sdk/openai, chat": "chat.completions",
  "@ai-sdk/openai, responses": "responses",
  "@ai-sdk/anthropic": "messages",
  "@ai-sdk/openai-compatible": "chat.completions",
};
const PROVIDERS: Readonly<Record<string, (model: string) => LanguageModel>> = {
  "@ai-sdk/openai, chat": (model) => openai().chat(model),
  "@ai-sdk/openai, responses": (model) => openai().responses(model),
  "@ai-sdk/anthropic": (model) => createAnthropic({ apiKey: deps.key, baseURL: `${deps.url}/v1` })(model),
  "@ai-sdk/openai-compatible": (model) =>
    createOpenAICompatible({
      name: "gateway",
      apiKey: deps.key,
      baseURL: `${deps.url}/v1`,
      includeUsage: true,
      supportsStructuredOutputs: true,
    })(model),
};
const openai = () => createOpenAI({ apiKey: deps.key, baseURL: `${deps.url}/v1` });

interface Answers {
  readonly text: Transcript;
  readonly calls: Transcript;
  readonly json: Transcript;
  readonly length: Transcript;
}

const ANSWERS: Readonly<Record<SurfaceName, Answers>> = {
  "chat.completions": {
    text: OPENAI_CHAT["text, most of its prompt from the cache, after thoughts that are not shown"],
    calls: OPENAI_CHAT["two calls at once"],
    json: OPENAI_CHAT["an answer in JSON"],
    length: OPENAI_CHAT["an answer that is too long"],
  },
  responses: {
    text: OPENAI_RESPONSES["text, most of its prompt from the cache"],
    calls: OPENAI_RESPONSES["thoughts in two paragraphs, words, two calls at once"],
    json: OPENAI_RESPONSES["an answer in JSON"],
    length: OPENAI_RESPONSES["an answer that is too long"],
  },
  messages: {
    text: ANTHROPIC_MESSAGES["text, most of its prompt from the cache"],
    calls: ANTHROPIC_MESSAGES["thoughts, hidden thoughts, words, two calls at once"],
    json: ANTHROPIC_MESSAGES["an answer in JSON"],
    length: ANTHROPIC_MESSAGES["an answer that is too long"],
  },
};

/** Without it the provider for Responses refers to items that it believes to be stored. */
const STATELESS = { openai: { store: false } };

const CITY = jsonSchema<{ city: string }>({
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
});
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const PDF = "JVBERi0xLjQKJcOkw7zDtsOfCjIgMCBvYmoKPDwvTGVuZ3RoIDMgMCBSPj4Kc3RyZWFtCg==";

for (const [name, provider] of Object.entries(PROVIDERS)) {
  for (const host of SURFACE_NAMES) {
    describe.each([
      [false, "model"],
      [true, "model"],
      [true, "whole"],
    ])(`${name} on ${host}, streamed: %p, by %s`, (streamed, served) => {
      const answers = ANSWERS[host];
      // What a provider says in the host's own language is its own affair.
      const sent = (fromEnd = 1) =>
        SPEAKS[name] === host ? deps.sent(fromEnd) : deps.translated(host, fromEnd);
      const run = async (options: Parameters<typeof generateText>[0]) => {
        const parameters = { maxRetries: 0, maxOutputTokens: 500, providerOptions: STATELESS, ...options };
        if (!streamed) return generateText(parameters);
        const answer = streamText({ ...parameters, onError: ({ error }) => expect(error).toBeNull() });
        await answer.consumeStream();
        return {
          text: await answer.text,
          usage: await answer.usage,
          finishReason: await answer.finishReason,
          steps: await answer.steps,
          output: await answer.output.then(undefined, () => undefined),
        };
      };

      test("text, and what it cost", async () => {
        deps.answers = [answers.text];
        const model = provider(`${host}/${served}`);
        const { text, usage, finishReason } = await run({
          model,
          instructions: "Be brief.",
          prompt: "Hello?",
        });
        const { story } = answers.text;
        expect(text).toBe(story.text!);
        expect(finishReason).toBe("stop");
        const { input, cacheRead, cacheWrite, output, reasoning } = story.usage!;
        expect(usage.inputTokens).toBe(input + cacheRead + cacheWrite);
        expect(usage.inputTokenDetails.cacheReadTokens).toBe(cacheRead);
        expect(usage.outputTokens).toBe(output);
        // Anthropic's provider tells thoughts only as text.
        if (name !== "@ai-sdk/anthropic")
          expect(usage.outputTokenDetails.reasoningTokens ?? 0).toBe(reasoning);
        expect(JSON.stringify(sent())).toContain("Be brief.");
      });

      test("two tools are called and their results come back", async () => {
        deps.answers = [answers.calls, answers.text];
        const requests: string[] = [];
        const { text, steps } = await run({
          model: provider(`${host}/${served}`),
          prompt: "How warm is it?",
          stopWhen: isStepCount(3),
          tools: {
            get_weather: tool({
              description: "The weather in a city.",
              inputSchema: CITY,
              execute: ({ city }) => {
                requests.push(city);
                return `4 °C in ${city}`;
              },
            }),
          },
        });
        expect(requests).toEqual(["Paris", "Bogotá"]);
        expect(text).toBe(answers.text.story.text!);
        expect(steps.length).toBe(2);
        expect(steps[0]!.finishReason).toBe("tool-calls");
        const [first, second] = [sent(2), sent(1)];
        expect(JSON.stringify(first.tools)).toContain("The weather in a city.");
        expect(resultsIn(host, second)).toEqual(["4 °C in Paris", "4 °C in Bogotá"]);
      });

      test("an object that follows a schema", async () => {
        deps.answers = [answers.json];
        const { output } = await run({
          model: provider(`${host}/${served}`),
          prompt: "Where?",
          output: Output.object({ schema: CITY }),
        });
        expect(output).toEqual({ city: "Oslo" });
        expect(JSON.stringify(sent())).toContain('"required":["city"]');
      });

      test("an image and a PDF", async () => {
        deps.answers = [answers.text];
        await run({
          model: provider(`${host}/${served}`),
          messages: [
            {
              role: "user",
              content: [
                { type: "text", text: "What is this?" },
                { type: "file", data: { type: "data", data: PNG }, mediaType: "image/png" },
                {
                  type: "file",
                  data: { type: "data", data: PDF },
                  mediaType: "application/pdf",
                  filename: "a.pdf",
                },
              ],
            },
          ],
        });
        expect(JSON.stringify(sent())).toContain(PNG);
        expect(JSON.stringify(sent())).toContain(PDF);
      });

      test("an answer that is too long", async () => {
        deps.answers = [answers.length];
        const { text, finishReason } = await run({
          model: provider(`${host}/${served}`),
          prompt: "A story?",
        });
        expect(text).toBe("Once upon a");
        expect(finishReason).toBe("length");
      });
    });
  }
}

test("a provider that refers to what it believes to be stored is refused at once", async () => {
  deps.answers = [ANSWERS.responses.calls];
  const before = deps.host.requests.length;
  const refused = generateText({
    model: openai().responses("responses/model"),
    prompt: "How warm is it?",
    maxRetries: 0,
    stopWhen: isStepCount(3),
    tools: { get_weather: tool({ inputSchema: CITY, execute: () => "4 °C" }) },
  });
  await expect(refused).rejects.toThrow("providerOptions.openai.store");
  expect(deps.host.requests.length).toBe(before + 1);
});

/** What the tools gave, as the host's language has it. */
function resultsIn(host: SurfaceName, body: ReturnType<TestGateway["sent"]>): unknown[] {
  switch (host) {
    case "chat.completions":
      return body.messages
        .filter(({ role }: { role: string }) => role === "tool")
        .map(({ content }: { content: unknown }) => content);
    case "responses":
      return body.input
        .filter(({ type }: { type: string }) => type === "function_call_output")
        .map(({ output }: { output: unknown }) => output);
    case "messages":
      return body.messages
        .at(-1)
        .content.filter(({ type }: { type: string }) => type === "tool_result")
        .map(({ content }: { content: unknown }) =>
          Array.isArray(content) ? content.map(({ text }) => text).join("") : content,
        );
  }
}
