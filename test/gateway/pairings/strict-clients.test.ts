import { afterAll, beforeAll, expect, test } from "bun:test";
import { ANTHROPIC_MESSAGES } from "../../fakes/hosts/anthropic-messages.ts";
import { OPENAI_CHAT } from "../../fakes/hosts/openai-chat.ts";
import { House } from "./house.ts";

/**
 * Clients that check an answer member by member, against what the providers send and not against their
 * published types.
 */
let house: House;
beforeAll(async () => {
  house = await House.open();
  house.answers = [OPENAI_CHAT["text, most of its prompt from the cache, after thoughts that are not shown"]];
});
afterAll(() => house.close());

const messages = [{ role: "user", content: "Hello?" }];
const ask = (path: string, model: string, more: object = {}) =>
  house.gateway.send("POST", path, {
    bearer: house.key,
    json: { model, messages, max_tokens: 500, ...more },
  });

test("Vercel's AI SDK 6 refuses `citations: null` in a text", async () => {
  const { json } = await ask("/v1/messages", "chat.completions/model");
  expect(json.content).toEqual([{ type: "text", text: expect.any(String) }]);
  const { text } = await ask("/v1/messages", "chat.completions/model", { stream: true });
  expect(text).toContain('"content_block":{"type":"text","text":""}');
});

test("OpenRouter's client refuses an answer without `system_fingerprint`", async () => {
  house.answers = [ANTHROPIC_MESSAGES["text, most of its prompt from the cache"]];
  const { json } = await ask("/v1/chat/completions", "messages/model");
  expect(json).toMatchObject({ object: "chat.completion", system_fingerprint: null });
});
