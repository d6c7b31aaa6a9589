import { afterAll, describe, expect, test } from "bun:test";
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
afterAll(async () => {
  for (const close of closing) await close();
});

async function sentBy(client: SurfaceName, spoken: SurfaceName, quirks: string, named: object) {
  const host = await startFakeHost(() => json(SAYS[spoken]));
  const gateway = await open(`
hosts: [{ id: h, base_url: ${host.url}/v1, speaks: [${spoken}], quirks: ${quirks} }]
models:
  - id: test/model
    context_length: 100000
    max_output_tokens: ${MODEL_CEILING}
    price: { input: 1, output: 2 }
    routes: [{ host: h, model: m }]
`);
  closing.push(
    () => gateway.close(),
    () => host.close(),
  );
  const { key } = await gateway.key(10);
  const said = client === "responses" ? { input: "Hi" } : { messages: [{ role: "user", content: "Hi" }] };
  const reply = await gateway.send("POST", PATHS[client], {
    bearer: key,
    json: { model: "test/model", ...said, ...named },
  });
  expect(reply.status).toBe(200);
  const { max_tokens, max_completion_tokens, max_output_tokens } = host.requests[0]!.json();
  return JSON.parse(JSON.stringify({ max_tokens, max_completion_tokens, max_output_tokens }));
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
