import { afterAll, expect, test } from "bun:test";
import { SURFACE_NAMES } from "../../../src/catalog/catalog.ts";
import { ANTHROPIC_MESSAGES } from "../../fakes/hosts/anthropic-messages.ts";
import { OPENAI_CHAT } from "../../fakes/hosts/openai-chat.ts";
import { OPENAI_RESPONSES } from "../../fakes/hosts/openai-responses.ts";
import { TestGateway } from "./test-gateway.ts";

/**
 * Clients that check an answer member by member, against what the providers send and not against their
 * published types.
 */
const deps = await TestGateway.open();
deps.answers = [OPENAI_CHAT["text, most of its prompt from the cache, after thoughts that are not shown"]];
afterAll(() => deps.close());

const messages = [{ role: "user", content: "Hello?" }];
const send = (path: string, model: string, more: object = {}) =>
  deps.gateway.send("POST", path, {
    bearer: deps.key,
    json: { model, messages, max_tokens: 500, ...more },
  });

test("Vercel's AI SDK 6 refuses `citations: null` in a text", async () => {
  const { json } = await send("/v1/messages", "chat.completions/model");
  expect(json.content).toEqual([{ type: "text", text: expect.any(String) }]);
  const { text } = await send("/v1/messages", "chat.completions/model", { stream: true });
  expect(text).toContain('"content_block":{"type":"text","text":""}');
});

test("OpenRouter's client refuses an answer without `system_fingerprint`", async () => {
  deps.answers = [ANTHROPIC_MESSAGES["text, most of its prompt from the cache"]];
  const { json } = await send("/v1/chat/completions", "messages/model");
  expect(json).toMatchObject({ object: "chat.completion", system_fingerprint: null });
});

test("OpenRouter's client refuses a response without `completed_at` and its penalties", async () => {
  const penalties = { frequency_penalty: 0, presence_penalty: 0 };
  const isNumber = (value: unknown) => typeof value === "number";
  const body = { input: "Hello?", max_output_tokens: 500 };
  deps.answers = [ANTHROPIC_MESSAGES["text, most of its prompt from the cache"]];
  const send = (more: object) =>
    deps.gateway.send("POST", "/v1/responses", {
      bearer: deps.key,
      json: { model: "messages/model", ...body, ...more },
    });
  const { json } = await send({});
  expect(json).toMatchObject({ object: "response", status: "completed", ...penalties });
  expect(isNumber(json.completed_at)).toBe(true);
  const { text } = await send({ stream: true });
  const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!));
  const responses = events.filter(({ response }) => response !== undefined);
  expect(responses.map(({ type }) => type)).toEqual([
    "response.created",
    "response.in_progress",
    "response.completed",
  ]);
  for (const { response } of responses) expect(response).toMatchObject(penalties);
  expect(responses.map(({ response }) => isNumber(response.completed_at))).toEqual([false, false, true]);
  for (const { response } of responses.slice(0, 2)) expect(response.completed_at).toBeNull();
});

test.each(SURFACE_NAMES)(
  "OpenRouter's provider for Vercel's AI SDK asks for a stream's usage in its own words, of %s",
  async (host) => {
    deps.answers = [TEXTS[host]];
    const reported = async (include: boolean) => {
      const more = { stream: true, usage: { include } };
      const { text } = await send("/v1/chat/completions", `${host}/model`, more);
      return /"usage":\{[^}]*"prompt_tokens":\d+/.test(text);
    };
    expect([await reported(true), await reported(false)]).toEqual([true, false]);
  },
);

const TEXTS = {
  "chat.completions":
    OPENAI_CHAT["text, most of its prompt from the cache, after thoughts that are not shown"],
  responses: OPENAI_RESPONSES["text, most of its prompt from the cache"],
  messages: ANTHROPIC_MESSAGES["text, most of its prompt from the cache"],
} as const;
