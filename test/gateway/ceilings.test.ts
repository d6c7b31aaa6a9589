import { afterEach, describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import { json, status } from "../fakes/behaviours.ts";
import { startFakeHost } from "../fakes/host.ts";
import { ANTHROPIC_MESSAGES } from "../fakes/hosts/anthropic-messages.ts";
import { OPENAI_CHAT } from "../fakes/hosts/openai-chat.ts";
import { OPENAI_RESPONSES } from "../fakes/hosts/openai-responses.ts";
import { open } from "./open.ts";

/**
 * Agents name one ceiling for all models. A host refuses more than its model writes, and no more than that is
 * held.
 */
const SAYS = {
  "chat.completions": Object.values(OPENAI_CHAT)[0]!.whole,
  responses: Object.values(OPENAI_RESPONSES)[0]!.whole,
  messages: Object.values(ANTHROPIC_MESSAGES)[0]!.whole,
} as const;
const PATHS = {
  "chat.completions": "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
} as const;
const MODEL_CEILING = 900;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function sentBy(client: SurfaceName, spoken: SurfaceName, quirks: string, named: object) {
  const { sent } = await exchange(client, spoken, quirks, named, MODEL_CEILING);
  const { max_tokens, max_completion_tokens, max_output_tokens } = sent;
  return JSON.parse(JSON.stringify({ max_tokens, max_completion_tokens, max_output_tokens }));
}

/** What a host is sent, and what the client learns was left out. */
async function exchange(
  client: SurfaceName,
  spoken: SurfaceName,
  quirks: string,
  named: object,
  modelCeiling: number,
  creditUsd = 10,
) {
  const host = await startFakeHost(() => json(SAYS[spoken]));
  const gateway = await open(`
hosts: [{ id: h, base_url: ${host.url}/v1, speaks: [${spoken}], quirks: ${quirks} }]
models:
  - id: test/model
    context_length: 100000
    max_output_tokens: ${modelCeiling}
    price: { input: 1, output: 2 }
    routes: [{ host: h, model: m }]
`);
  closing.push(
    () => gateway.close(),
    () => host.close(),
  );
  const { key } = await gateway.key(creditUsd);
  const conversation =
    client === "responses" ? { input: "Hi" } : { messages: [{ role: "user", content: "Hi" }] };
  const reply = await gateway.send("POST", PATHS[client], {
    bearer: key,
    json: { model: "test/model", ...conversation, ...named },
  });
  expect(reply.status).toBe(200);
  return { sent: host.requests[0]!.json(), omitted: reply.headers.get("x-gateway-omitted") };
}

const named = (client: SurfaceName, ceiling: number) =>
  client === "responses" ? { max_output_tokens: ceiling } : { max_tokens: ceiling };

for (const client of SURFACE_NAMES)
  describe(`a client of ${client}`, () => {
    test.each([...SURFACE_NAMES])(
      "that names more than the model writes, on a host of %s: the model's ceiling is asked for",
      async (spoken) => {
        expect(await sentBy(client, spoken, "{}", named(client, 32_000))).toEqual(
          named(spoken, MODEL_CEILING),
        );
      },
    );

    test.each([...SURFACE_NAMES])("that names less, on a host of %s: it is asked for", async (spoken) => {
      expect(await sentBy(client, spoken, "{}", named(client, 500))).toEqual(named(spoken, 500));
    });
  });

describe("the two names that chat has for it", () => {
  const NEWER = "{ max_completion_tokens: true }";
  const OLDER = "{ core_fields_only: true }";
  test.each<[string, object, object]>([
    ["{}", { max_completion_tokens: 32_000 }, { max_completion_tokens: 900 }],
    [
      "{}",
      { max_completion_tokens: 32_000, max_tokens: 500 },
      { max_completion_tokens: 900, max_tokens: 500 },
    ],
    ["{}", { max_completion_tokens: 500 }, { max_completion_tokens: 500 }],
    [NEWER, { max_tokens: 500 }, { max_completion_tokens: 500 }],
    [NEWER, { max_tokens: 32_000 }, { max_completion_tokens: 900 }],
    [NEWER, { max_tokens: 500, max_completion_tokens: 400 }, { max_completion_tokens: 400 }],
    [OLDER, { max_completion_tokens: 500 }, { max_tokens: 500 }],
    [OLDER, { max_completion_tokens: null, max_tokens: 500 }, { max_tokens: 500 }],
    [OLDER, { max_completion_tokens: 32_000 }, { max_tokens: 900 }],
    [OLDER, { max_completion_tokens: null }, {}],
  ])("with quirks %s, %j is asked for as %j", async (quirks, given, sent) => {
    expect(await sentBy("chat.completions", "chat.completions", quirks, given)).toEqual(sent);
  });
});

describe("tokens to think with, which Anthropic counts into the ceiling, and refuses where they fill it", () => {
  const thinking = (budget: number) => ({ type: "enabled", budget_tokens: budget });

  test.each<[string, object, object | undefined, string | null]>([
    ["as many as were named", { max_tokens: 8_000, thinking: thinking(7_999) }, thinking(7_999), null],
    ["as many, where they fit", { max_tokens: 32_000, thinking: thinking(4_000) }, thinking(4_000), null],
    ["four fifths of it", { max_tokens: 32_000, thinking: thinking(31_999) }, thinking(6_400), null],
    [
      "four fifths of it, shown as before",
      { max_tokens: 9_000, thinking: { ...thinking(7_000), display: "omitted" } },
      { ...thinking(6_400), display: "omitted" },
      null,
    ],
    [
      "more than it, as the client has it, which may think between calls of tools",
      { max_tokens: 32_000, thinking: thinking(60_000) },
      thinking(60_000),
      null,
    ],
    ["none, where none are named", { max_tokens: 32_000 }, undefined, null],
    [
      "as the model likes",
      { max_tokens: 32_000, thinking: { type: "adaptive" } },
      { type: "adaptive" },
      null,
    ],
  ])("under the ceiling of 8,000 of the model: %s", async (_, named, thoughts, omitted) => {
    const sent = await exchange("messages", "messages", "{}", named, 8_000);
    expect([sent.sent.max_tokens, sent.sent.thinking, sent.omitted]).toEqual([8_000, thoughts, omitted]);
  });

  test("where the model writes no more than the least that may be thought with, it does not think", async () => {
    const named = { max_tokens: 32_000, thinking: thinking(16_000) };
    const exchanged = await exchange("messages", "messages", "{}", named, 1_024);
    expect([exchanged.sent.max_tokens, "thinking" in exchanged.sent, exchanged.omitted]).toEqual([
      1_024,
      false,
      "thinking",
    ]);
    const { sent } = await exchange("messages", "messages", "{}", named, 1_100);
    expect([sent.max_tokens, sent.thinking]).toEqual([1_100, thinking(1_024)]);
  });

  test.each<[string, object, object]>([
    ["lowered", { max_tokens: 32_000, reasoning: { max_tokens: 30_000 } }, thinking(6_400)],
    ["the client's", { max_tokens: 7_000, reasoning: { max_tokens: 6_900 } }, thinking(6_900)],
    [
      "the client's, and they do not fit",
      { max_tokens: 7_000, reasoning: { max_tokens: 7_000 } },
      thinking(5_600),
    ],
    ["not named", { max_tokens: undefined, reasoning: { max_tokens: 30_000 } }, thinking(6_400)],
    ["less than it takes", { max_tokens: 7_000, reasoning: { max_tokens: 100 } }, thinking(1_024)],
  ])("for a client of chat, leave room for an answer where the ceiling is %s", async (_, named, thoughts) => {
    const { sent } = await exchange("chat.completions", "messages", "{}", named, 8_000);
    expect(sent.thinking).toEqual(thoughts);
  });
});

describe("tokens to think with in OpenRouter's words, which it counts into the ceiling too", () => {
  test.each<[string, object, object | undefined, string | null]>([
    [
      "as many as were named",
      { max_tokens: 8_000, reasoning: { max_tokens: 7_999 } },
      { max_tokens: 7_999 },
      null,
    ],
    [
      "as many, where they fit",
      { max_tokens: 32_000, reasoning: { max_tokens: 4_000 } },
      { max_tokens: 4_000 },
      null,
    ],
    [
      "four fifths of it",
      { max_tokens: 32_000, reasoning: { max_tokens: 30_000 } },
      { max_tokens: 6_400 },
      null,
    ],
    [
      "four fifths of it, hidden as before",
      { max_completion_tokens: 9_000, reasoning: { exclude: true, max_tokens: 7_000 } },
      { exclude: true, max_tokens: 6_400 },
      null,
    ],
    [
      "more than it, as the client has it",
      { max_tokens: 32_000, reasoning: { max_tokens: 60_000 } },
      { max_tokens: 60_000 },
      null,
    ],
    [
      "an effort, of which the host makes what fits",
      { max_tokens: 32_000, reasoning: { effort: "high" } },
      { effort: "high" },
      null,
    ],
    ["none, where none are named", { max_tokens: 32_000 }, undefined, null],
  ])("under the ceiling of 8,000 of the model: %s", async (_, named, reasoning, omitted) => {
    const sent = await exchange("chat.completions", "chat.completions", "{}", named, 8_000);
    expect([sent.sent.reasoning, sent.omitted]).toEqual([reasoning, omitted]);
  });

  test("where the model writes no more than the least that may be thought with, none are asked for", async () => {
    const named = { max_tokens: 32_000, reasoning: { max_tokens: 16_000 } };
    const sent = await exchange("chat.completions", "chat.completions", "{}", named, 1_024);
    expect([sent.sent.max_tokens, sent.sent.reasoning, sent.omitted]).toEqual([
      1_024,
      undefined,
      "reasoning",
    ]);
  });

  test("under a ceiling that the gateway imposes, they leave room for an answer", async () => {
    const { sent } = await exchange(
      "chat.completions",
      "chat.completions",
      "{}",
      { reasoning: { max_tokens: 30_000 } },
      50_000,
      // Too little for the whole answer.
      0.05,
    );
    expect([sent.max_tokens, sent.reasoning]).toEqual([16_384, { max_tokens: 13_107 }]);
  });
});

test("a ceiling that the gateway imposes is lowered to that of a model it goes on to", async () => {
  const host = await startFakeHost((request) =>
    request.json().model === "big" ? status(500) : json(SAYS["chat.completions"]),
  );
  const gateway = await open(`
hosts: [{ id: h, base_url: ${host.url}/v1, speaks: [chat.completions] }]
models:
  - { id: test/big, context_length: 100000, max_output_tokens: 50000, price: { input: 1, output: 2 }, routes: [{ host: h, model: big }] }
  - { id: test/small, context_length: 100000, max_output_tokens: 500, price: { input: 1, output: 2 }, routes: [{ host: h, model: small }] }
generation: { default_max_output_tokens: 900 }
`);
  closing.push(
    () => gateway.close(),
    () => host.close(),
  );
  // Too little for the whole answer of the big one, which is why a ceiling is imposed.
  const { key } = await gateway.key(0.01);
  const reply = await gateway.chat(key, {
    model: "test/big",
    models: ["test/small"],
    max_tokens: undefined,
  });
  const ceilings = host.requests.map((request) => [request.json().model, request.json().max_tokens]);
  expect([reply.status, ...ceilings]).toEqual([200, ["big", 900], ["small", 500]]);
});
