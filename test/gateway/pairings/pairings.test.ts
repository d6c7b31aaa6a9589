import { afterAll, describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import { ACCENTED, OFFICIAL } from "../../fakes/hosts/all.ts";
import { ANTHROPIC_MESSAGES } from "../../fakes/hosts/anthropic-messages.ts";
import { OPENAI_CHAT } from "../../fakes/hosts/openai-chat.ts";
import { OPENAI_RESPONSES } from "../../fakes/hosts/openai-responses.ts";
import type { Transcript } from "../../fakes/hosts/transcript.ts";
import { tellable } from "../../surfaces/answer-content.ts";
import { EXCHANGES, type Exchange } from "./exchanges.ts";
import { send } from "./sdk-clients.ts";
import { TestGateway } from "./test-gateway.ts";

/**
 * The official SDKs on hosts of all three languages, over the gateway's socket: what the host is sent, what
 * the client sees.
 */
const deps = await TestGateway.open();
afterAll(() => deps.close());

/** Answers of each language's own host. */
const ANSWERS: Readonly<Record<SurfaceName, Readonly<Record<"text" | "json" | "calls", Transcript>>>> = {
  "chat.completions": {
    text: OPENAI_CHAT["text, most of its prompt from the cache, after thoughts that are not shown"],
    json: OPENAI_CHAT["an answer in JSON"],
    calls: OPENAI_CHAT["two calls at once"],
  },
  responses: {
    text: OPENAI_RESPONSES["text, most of its prompt from the cache"],
    json: OPENAI_RESPONSES["an answer in JSON"],
    calls: OPENAI_RESPONSES["thoughts in two paragraphs, words, two calls at once"],
  },
  messages: {
    text: ANTHROPIC_MESSAGES["text, most of its prompt from the cache"],
    json: ANTHROPIC_MESSAGES["an answer in JSON"],
    calls: ANTHROPIC_MESSAGES["thoughts, hidden thoughts, words, two calls at once"],
  },
};

describe.each(Object.entries<Exchange>(EXCHANGES))("%s", (_name, exchange) => {
  for (const client of SURFACE_NAMES) {
    const body = exchange[client];
    if (body === undefined) continue;
    for (const speaks of SURFACE_NAMES) {
      const expected = client === speaks ? body : (exchange.received?.[speaks] ?? exchange[speaks]);
      if (expected === undefined) continue;

      test.each([false, true])(`${client} client, ${speaks} host, streamed: %p`, async (stream) => {
        const answer = ANSWERS[speaks][exchange.answer ?? "text"];
        deps.answers = [answer];
        const { answer: answered, headers } = await send(
          client,
          deps,
          { ...body, model: `${speaks}/model` },
          stream,
        );
        const sent = deps.translated(speaks);
        expect(sent).toMatchObject(plain(expected));
        expect(sent.model).toBe("host-model");
        expect(headers.get("x-gateway-omitted")).toBe(exchange.omitted?.[`${client} on ${speaks}`] ?? null);
        expect(answered).toEqual(tellable(client, answer.story));
      });
    }
  }
});

/** A request that leaves a host free to answer as any does. */
const HELLO: Readonly<Record<SurfaceName, object>> = {
  "chat.completions": {
    messages: [{ role: "user", content: "Hi" }],
    tools: [{ type: "custom", custom: { name: "apply_patch" } }],
  },
  responses: { input: "Hi", tools: [{ type: "custom", name: "apply_patch" }] },
  messages: { messages: [{ role: "user", content: "Hi" }], max_tokens: 500 },
};

describe.each([...OFFICIAL, ...ACCENTED])("%s", (_name, transcript) => {
  const { host: speaks, story } = transcript;
  const clients = SURFACE_NAMES.filter(
    (client) =>
      // A client of the host's own language receives what it says, accent and all.
      (client !== speaks || OFFICIAL.some(([, one]) => one === transcript)) &&
      (client !== "messages" || !story.calls?.some(({ custom }) => custom)),
  );
  for (const client of clients) {
    test.each([
      [false, "model"],
      [true, "model"],
      [true, "whole"],
    ])(`${client} client, streamed: %p, by ${speaks}/%s`, async (stream, name) => {
      deps.answers = [transcript];
      const { answer } = await send(client, deps, { ...HELLO[client], model: `${speaks}/${name}` }, stream);
      if (name === "whole") expect(deps.sent().stream ?? false).toBe(false);
      expect(answer).toEqual({
        ...tellable(client, story),
        ...(client === speaks && story.ending ? { end: story.ending } : {}),
      });
    });
  }
});

/** Without members that are undefined, which JSON does not have. */
const plain = (value: object): object => JSON.parse(JSON.stringify(value));
