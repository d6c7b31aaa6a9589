import { describe, expect, test } from "bun:test";
import { type Host, SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import { json, sse, status } from "../fakes/behaviours.ts";
import type { Behaviour, FakeHost } from "../fakes/host.ts";
import { hostRow } from "../fakes/host.ts";
import { refusal } from "../fakes/refusals.ts";
import { chatText, type HostAnswer, messagesText, responsesText } from "../fakes/transcripts.ts";
import { model, priceOf, route } from "../routing/world.ts";
import { openedPerTest } from "./serving.ts";
import { read, requestBody, type TestGateway, type TestGatewayOptions } from "./test-gateway.ts";

/** A host declines for policy reasons, with a good status: neither an answer nor a failure. */
const { startHost, openGateway } = openedPerTest();

/** As the host was asked for it. */
const giving =
  ({ events, whole }: HostAnswer): Behaviour =>
  (wire, request) =>
    (request.json().stream === true ? sse(events) : json(whole))(wire, request);

const TEXT: Readonly<Record<SurfaceName, HostAnswer>> = {
  "chat.completions": chatText(),
  responses: responsesText(),
  messages: messagesText(),
};

interface PlannedHost {
  readonly speaks: SurfaceName;
  readonly says: Behaviour;
  readonly row?: Partial<Host>;
}

/** `test/model` at USD 1 in and 10 out per million on h0, and so on: `test/m1` on h1 at 2, `test/m2` on h2 at 3. */
async function modelsOn(
  planned: readonly PlannedHost[],
  { secondUsd = 2, ...options }: TestGatewayOptions & { readonly secondUsd?: number } = {},
): Promise<{ gateway: TestGateway; hosts: FakeHost[] }> {
  const hosts = await Promise.all(planned.map(({ says }) => startHost(() => says)));
  const rows = hosts.map((host, at) =>
    hostRow(host, { id: `h${at}`, speaks: [planned[at]!.speaks], ...planned[at]!.row }),
  );
  const models = rows.slice(1).map((host, at) => {
    const own = { ...route(host.id), host, price: priceOf(at + secondUsd) };
    return model(`test/m${at + 1}`, [own], { contextLength: 100_000 });
  });
  const auto = new Map([["all", ["test/model", ...models.map(({ id }) => id)]]]);
  return { gateway: await openGateway([rows[0]!], { models, auto, ...options }), hosts };
}

const send = (gateway: TestGateway, client: SurfaceName, body: object) =>
  gateway.send(client, requestBody(client, body));

/** How clients of each language name the next model. */
const naming = (client: SurfaceName, ...ids: string[]): object =>
  client === "messages" ? { fallbacks: ids.map((id) => ({ model: id })) } : { models: ids };

/** A long answer, which the gateway has streamed by its host, or a short one. */
const ceiling = (client: SurfaceName, tokens: number): object =>
  client === "responses" ? { max_output_tokens: tokens } : { max_tokens: tokens };

const SHAPES: [string, object, number][] = [
  ["streamed", { stream: true }, 400],
  ["whole", {}, 20],
  ["whole, put together from a stream", {}, 400],
];

/** As Anthropic lists the models that an answer was tried on. */
const ITERATIONS = [
  { type: "message", model: "test/model", input_tokens: 11, output_tokens: 1 },
  { type: "fallback_message", model: "test/m1", input_tokens: 11, output_tokens: 3 },
];

describe("before any content, the next model that the client names is asked", () => {
  for (const client of SURFACE_NAMES)
    for (const speaks of SURFACE_NAMES)
      test.each(SHAPES)(`a ${client} client, a host of ${speaks}, %s`, async (_shape, how, tokens) => {
        const { gateway, hosts } = await modelsOn([
          { speaks, says: giving(refusal(speaks)) },
          { speaks: "chat.completions", says: giving(TEXT["chat.completions"]) },
        ]);
        const body = { ...how, ...ceiling(client, tokens), ...naming(client, "test/m1") };
        const answer = await send(gateway, client, body);
        const text = await read(answer);
        expect(text).toContain("test/m1");
        expect(text).not.toMatch(/content_filter|"refusal"[^:]/);
        const iterations = /"iterations":(\[.*?\])/.exec(text)?.[1];
        if (client === "messages") expect(JSON.parse(iterations!)).toMatchObject(ITERATIONS);
        else expect(text).not.toMatch(/test\/model|iterations/);
        expect(answer.headers).toMatchObject({
          "x-gateway-declined": "test/model",
          "x-gateway-model": "test/m1",
        });
        expect(gateway.receipt(answer)).toMatchObject({
          state: "settled",
          model_requested: "test/model",
          model: "test/m1",
          host: "h1",
          price: { input: 2, output: 2 },
          tokens: { input: 11, output: 3 },
          cost_usd: 0.000028,
          attempts: [
            { host: "h0", model: "test/model", outcome: "declined", detail: "the model declined" },
            { host: "h1", model: "test/m1", outcome: /^(opened|answered)$/ },
          ].map((one) => expect.objectContaining({ ...one, outcome: expect.stringMatching(one.outcome) })),
        });
        expect(hosts.map(({ requests }) => requests.length)).toEqual([1, 1]);
        expect(await gateway.drifts()).toEqual([]);
      });
});

describe("within an answer or at its end, a refusal is the answer's end", () => {
  for (const client of SURFACE_NAMES)
    for (const speaks of SURFACE_NAMES)
      test.each(SHAPES)(`a ${client} client, a host of ${speaks}, %s`, async (_shape, how, tokens) => {
        const { gateway, hosts } = await modelsOn([
          { speaks, says: giving(refusal(speaks, ["Hello", " there"])), row: { refusals: "free" } },
          { speaks: "chat.completions", says: giving(TEXT["chat.completions"]) },
        ]);
        const body = { ...how, ...ceiling(client, tokens), ...naming(client, "test/m1") };
        const answer = await send(gateway, client, body);
        expect(await read(answer)).toMatch(/content_filter|"refusal"/);
        expect(answer.headers).not.toHaveProperty("x-gateway-declined");
        expect(gateway.receipt(answer)).toMatchObject({
          model: "test/model",
          tokens: { input: 11, output: 2 },
          cost_usd: 0.000031,
        });
        expect(hosts.map(({ requests }) => requests.length)).toEqual([1, 0]);
      });
});

describe("where nobody else is named", () => {
  test.each(SHAPES)(
    "the refusal is the answer, and no other host of the model is asked: %s",
    async (_shape, how, tokens) => {
      const hosts = await Promise.all(
        [refusal("messages"), messagesText()].map((answer) => startHost(() => giving(answer))),
      );
      const rows = hosts.map((host, at) => hostRow(host, { id: `h${at}`, speaks: ["messages"] }));
      const gateway = await openGateway(rows);
      const answer = await send(gateway, "messages", { ...how, max_tokens: tokens });
      expect(await read(answer)).toContain('"refusal"');
      expect(answer.headers).toMatchObject({
        "x-gateway-declined": "test/model",
        "x-gateway-model": "test/model",
      });
      expect(gateway.receipt(answer)).toMatchObject({
        state: "settled",
        host: "h0",
        attempts: [{ host: "h0", outcome: "declined" }],
        tokens: { input: 11, output: 1, source: "host" },
        cost_usd: 0.000021,
      });
      expect(hosts[1]!.requests).toHaveLength(0);
    },
  );

  test.each(SHAPES)(
    "it costs nothing at a host that charges nothing for it: %s",
    async (_shape, how, tokens) => {
      for (const speaks of SURFACE_NAMES) {
        const { gateway } = await modelsOn([
          { speaks, says: giving(refusal(speaks)), row: { refusals: "free" } },
        ]);
        const answer = await send(gateway, "messages", { ...how, max_tokens: tokens });
        expect(await read(answer)).toContain('"cost":0');
        expect(gateway.receipt(answer)).toMatchObject({
          state: "settled",
          tokens: { input: 0, output: 0 },
          cost_usd: 0,
        });
        expect(await gateway.drifts()).toEqual([]);
      }
    },
  );

  test("thoughts that the host hides are an answer: it bills them, and no other model is asked", async () => {
    const thoughtful = refusal("messages", [], { output: 900 });
    const { gateway, hosts } = await modelsOn([
      { speaks: "messages", says: giving(thoughtful), row: { refusals: "free" } },
      { speaks: "messages", says: giving(TEXT.messages) },
    ]);
    const body = { max_tokens: 1_000, stream: true, ...naming("messages", "test/m1") };
    const answer = await send(gateway, "messages", body);
    expect(await read(answer)).toContain('"refusal"');
    expect(gateway.receipt(answer)).toMatchObject({ model: "test/model", tokens: { output: 900 } });
    expect(hosts[1]!.requests).toHaveLength(0);
  });
});

describe("several models", () => {
  const declining = (speaks: SurfaceName, words: string): PlannedHost => ({
    speaks,
    says: giving(refusal(speaks, [], { model: words })),
  });

  test("if all decline, the first refusal is the answer, and alone is charged", async () => {
    const { gateway, hosts } = await modelsOn([
      declining("messages", "a"),
      declining("chat.completions", "b"),
      declining("responses", "c"),
    ]);
    const body = { stream: true, ...naming("chat.completions", "test/m1", "test/m2") };
    const answer = await send(gateway, "chat.completions", body);
    expect(await read(answer)).toContain('"test/model"');
    expect(answer.headers).toMatchObject({
      "x-gateway-declined": "test/model, test/m1, test/m2",
      "x-gateway-model": "test/model",
    });
    expect(gateway.receipt(answer)).toMatchObject({ host: "h0", cost_usd: 0.000021 });
    expect(gateway.receipt(answer).attempts).toHaveLength(3);
    expect(hosts.every(({ requests }) => requests.length === 1)).toBe(true);
  });

  test("a refusal is a better answer than the next model's failure", async () => {
    const { gateway } = await modelsOn([
      declining("messages", "a"),
      { speaks: "messages", says: status(503) },
    ]);
    const answer = await send(gateway, "messages", naming("messages", "test/m1"));
    expect(answer.status).toBe(200);
    expect(await read(answer)).toContain('"refusal"');
  });

  test.each([{ stream: true }, { stream: false }])("Auto goes on to its next model: %p", async (how) => {
    const { gateway } = await modelsOn([
      declining("messages", "a"),
      { speaks: "responses", says: giving(TEXT.responses) },
    ]);
    const body = { ...how, model: "gateway/auto:all" };
    const answer = await send(gateway, "chat.completions", body);
    await read(answer);
    expect(gateway.receipt(answer)).toMatchObject({ model: "test/m1", model_requested: "gateway/auto:all" });
  });

  test.each(["content_filter", "bio_policy", "misalignment_policy_violation"])(
    "Auto also goes on where the host declines with an error: %s",
    async (code) => {
      const { gateway } = await modelsOn([
        {
          speaks: "responses",
          says: json({ error: { message: "No.", type: "invalid_request_error", code } }, 400),
        },
        { speaks: "responses", says: giving(TEXT.responses) },
      ]);
      const answer = await send(gateway, "responses", { model: "gateway/auto:all" });
      expect(answer.status).toBe(200);
      expect(gateway.receipt(answer)).toMatchObject({ model: "test/m1" });
    },
  );

  test("says nothing about the host: no circuit opens, however often it declines", async () => {
    const { gateway, hosts } = await modelsOn([
      declining("messages", "a"),
      { speaks: "messages", says: giving(TEXT.messages) },
    ]);
    for (let count = 0; count < 10; count++) {
      const answer = await send(gateway, "messages", naming("messages", "test/m1"));
      await read(answer);
      expect(gateway.receipt(answer)).toMatchObject({ model: "test/m1" });
    }
    expect(hosts[0]!.requests).toHaveLength(10);
  });

  describe("of which the second is far more expensive", () => {
    const expensive = async (creditUsd: number) => {
      const { gateway, hosts } = await modelsOn(
        [declining("messages", "a"), { speaks: "messages", says: giving(TEXT.messages) }],
        { creditUsd, secondUsd: 5_000 },
      );
      const body = { max_tokens: 20, stream: true, ...naming("messages", "test/m1") };
      const answer = await send(gateway, "messages", body);
      await read(answer);
      return { gateway, hosts, receipt: gateway.receipt(answer) };
    };

    test("it is held before the first is asked", async () => {
      const { receipt, gateway } = await expensive(10);
      expect(receipt).toMatchObject({ model: "test/m1", cost_usd: 0.07 });
      expect(receipt.held_usd).toBeGreaterThanOrEqual(0.07);
      expect(await gateway.drifts()).toEqual([]);
    });

    test("where credit does not cover it, the first one's refusal is the answer", async () => {
      const { receipt, hosts } = await expensive(0.01);
      expect(receipt).toMatchObject({ model: "test/model", host: "h0" });
      expect(hosts[1]!.requests).toHaveLength(0);
    });
  });
});

describe("what an entry of fallbacks changes", () => {
  const changing = async (entry: object, body: object = {}, says = giving(TEXT.messages)) => {
    const { gateway, hosts } = await modelsOn([
      { speaks: "messages", says: giving(refusal("messages")) },
      { speaks: "messages", says },
    ]);
    const fallbacks = [{ model: "test/m1", ...entry }];
    const answer = await send(gateway, "messages", { max_tokens: 20, stream: true, ...body, fallbacks });
    await read(answer);
    return {
      gateway,
      receipt: gateway.receipt(answer),
      second: hosts[1]!.requests[0]!.json(),
      first: hosts[0]!.requests[0]!.json(),
    };
  };

  test("reaches that model alone, and no host is sent the list", async () => {
    const { second, first } = await changing(
      { max_tokens: 400, thinking: null, output_config: { effort: "low" } },
      {
        thinking: { type: "adaptive" },
        output_config: { effort: "high", task_budget: { type: "tokens", total: 9 } },
      },
    );
    expect(second).toMatchObject({
      model: "h1-name",
      max_tokens: 400,
      output_config: { effort: "low", task_budget: { type: "tokens", total: 9 } },
    });
    expect(second).not.toContainAnyKeys(["thinking", "fallbacks"]);
    expect(first).toMatchObject({
      max_tokens: 20,
      thinking: { type: "adaptive" },
      output_config: { effort: "high" },
    });
    expect(first).not.toHaveProperty("fallbacks");
  });

  test("a higher ceiling is held from the start, and billed", async () => {
    const long = messagesText(
      Array.from({ length: 500 }, () => " word"),
      { output: 500 },
    );
    const { receipt, gateway } = await changing({ max_tokens: 900 }, { stream: false }, giving(long));
    expect(receipt).toMatchObject({ model: "test/m1", tokens: { output: 500 }, cost_usd: 0.001022 });
    // All 900 tokens at the higher of both prices of an answer.
    expect(receipt.held_usd).toBeGreaterThan(0.009);
    expect(await gateway.drifts()).toEqual([]);
  });
});

describe("fallbacks in the model's own row", () => {
  const withFallbacks = async (
    planned: readonly PlannedHost[],
    body: object,
    client: SurfaceName = "messages",
  ) => {
    const { gateway, hosts } = await modelsOn(planned, { model: { fallbacks: ["test/m1"] } });
    const answer = await send(gateway, client, body);
    await read(answer);
    return { answer, receipt: gateway.receipt(answer), hosts };
  };
  const SERVES: PlannedHost = { speaks: "messages", says: giving(TEXT.messages) };
  const DECLINES: PlannedHost = { speaks: "messages", says: giving(refusal("messages")) };

  test.each<[string, object, SurfaceName]>([
    ["which the request names by that word", { fallbacks: "default" }, "messages"],
    ["of which the request says nothing", {}, "chat.completions"],
    ["streamed, in Codex's language", { stream: true }, "responses"],
  ])("serve in its place when it declines, %s", async (_how, body, client) => {
    const { receipt, answer } = await withFallbacks([DECLINES, SERVES], body, client);
    expect(receipt).toMatchObject({ model: "test/m1", model_requested: "test/model" });
    expect(answer.headers).toMatchObject({
      "x-gateway-declined": "test/model",
      "x-gateway-model": "test/m1",
    });
    expect(answer.headers).not.toHaveProperty("x-gateway-omitted");
  });

  test.each<[string, Behaviour]>([
    ["fails", status(503)],
    ["finds the request wrong", json({ error: { message: "temperature must be at most 1" } }, 400)],
    ["finds the prompt too long", json({ error: { message: "prompt is too long" } }, 400)],
  ])("do not where it %s", async (_how, says) => {
    const { hosts, answer } = await withFallbacks([{ speaks: "messages", says }, SERVES], {});
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(hosts[1]!.requests).toHaveLength(0);
  });

  test("do not where the request names others", async () => {
    const { hosts } = await withFallbacks([DECLINES, SERVES, SERVES], { fallbacks: [{ model: "test/m2" }] });
    expect(hosts.map(({ requests }) => requests.length)).toEqual([1, 0, 1]);
  });

  test("without any, a request for the default ones is answered, and the header names what it lacks", async () => {
    const { gateway } = await modelsOn([SERVES]);
    const answer = await send(gateway, "messages", { fallbacks: "default" });
    expect(answer.headers).toMatchObject({ "x-gateway-omitted": "fallbacks" });
    await read(answer);
  });
});

test.each(["chat.completions", "responses"] as const)(
  "the mark where another model took over an earlier answer is no content for a host of %s",
  async (speaks) => {
    const { gateway, hosts } = await modelsOn([{ speaks, says: giving(TEXT[speaks]) }]);
    const mark = { type: "fallback", from: { model: "a" }, to: { model: "b" }, trigger: { type: "refusal" } };
    const messages = [
      { role: "user", content: "Hello" },
      { role: "assistant", content: [mark, { type: "text", text: "Good day." }] },
      { role: "user", content: "Go on" },
    ];
    const answer = await send(gateway, "messages", { messages });
    expect(answer.status).toBe(200);
    await read(answer);
    expect(hosts[0]!.requests[0]!.text()).toContain("Good day.");
    expect(hosts[0]!.requests[0]!.text()).not.toContain("fallback");
    expect(answer.headers).not.toHaveProperty("x-gateway-omitted");
  },
);

test("a host of the same language gets the token that makes up for a declined request", async () => {
  const { gateway, hosts } = await modelsOn([{ speaks: "messages", says: giving(TEXT.messages) }]);
  const token = { token: "fct_1", mode: "best_effort" };
  const answer = await send(gateway, "messages", { fallback_credit_token: token });
  await read(answer);
  expect(hosts[0]!.requests[0]!.json()).toMatchObject({ fallback_credit_token: token });
  expect(answer.headers).not.toHaveProperty("x-gateway-omitted");
});

test("the Open Tier refuses other models", async () => {
  const { gateway } = await modelsOn([{ speaks: "messages", says: giving(refusal("messages")) }], {
    free: true,
  });
  for (const more of [
    { fallbacks: [{ model: "test/m1" }] },
    { fallbacks: "default" },
    { models: ["test/m1"] },
  ]) {
    const answer = await send(gateway, "messages", { model: "test/model:free", ...more });
    expect(answer.status).toBe(400);
  }
});
