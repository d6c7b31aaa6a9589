import { afterAll, describe, expect, test } from "bun:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { streamText } from "ai";
import OpenAI from "openai";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import { json, sse } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { type FakeRequest, startFakeHost } from "../fakes/host.ts";
import { chatText, type HostAnswer, messagesText, responsesText } from "../fakes/transcripts.ts";
import { framesOf, type Loose } from "../surfaces/event-order.ts";
import { violations, type WireName } from "../surfaces/wire-schema.ts";
import { open } from "./open.ts";

/** Every answer says what it cost, in its last usage, to the nano-dollar of its receipt. */
/** What the host does to its own answer. */
let changed: (answer: HostAnswer) => HostAnswer = (answer) => answer;

const ANSWERS: Readonly<Record<SurfaceName, () => HostAnswer>> = {
  "chat.completions": () => chatText(["Hello", " there"], { input: 7, output: 3 }),
  responses: () => responsesText(["Hello", " there"], { input: 7, output: 3 }),
  messages: () => messagesText(["Hello", " there"], { input: 7, output: 3 }),
};
/** 7 and 3 tokens: 0.000025640331, of which a started nano-dollar is a whole one. */
const PRICE = "{ input: 0.333333, output: 7.769 }";
const COST = 0.000025641;

const host = await startFakeHost((request: FakeRequest) => {
  const spoken = SURFACE_NAMES.find((name) => request.path.endsWith(name.replace(".", "/")))!;
  const { events, whole } = changed(ANSWERS[spoken]());
  return request.json().stream === true ? sse(events) : json(whole);
});
const hosts = SURFACE_NAMES.map(
  (name) => `  - { id: "${name}", base_url: "${host.url}/v1", speaks: [${name}] }`,
);
const models = SURFACE_NAMES.map(
  (name) => `
  - id: on/${name}
    context_length: 100000
    max_output_tokens: 4000
    price: ${PRICE}
    routes: [{ host: "${name}", model: m }]`,
);
const gateway = await open(`hosts:\n${hosts.join("\n")}\nmodels:${models.join("")}\n`);
const mine = await gateway.key(10, { rpm_limit: 10_000, tpm_limit: 100_000_000 });
afterAll(() => closeAll(gateway, host));

const PATHS: Readonly<Record<SurfaceName, string>> = {
  "chat.completions": "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
};

interface Asking {
  readonly client: SurfaceName;
  readonly on: SurfaceName;
  readonly stream: boolean;
  readonly ceiling: number;
}

/** Whole answers of up to 150 tokens are asked for whole, longer ones are collected from a stream. */
const WAYS = { streamed: [true, 100], whole: [false, 100], collected: [false, 1_000] } as const;

async function send({ client, on, stream, ceiling }: Asking, more: object = {}) {
  const conversation =
    client === "responses"
      ? { input: "Hi", max_output_tokens: ceiling }
      : { messages: [{ role: "user", content: "Hi" }], max_tokens: ceiling };
  const usage = client === "chat.completions" && stream ? { stream_options: { include_usage: true } } : {};
  const body = { model: `on/${on}`, stream, ...conversation, ...usage, ...more };
  const { status, headers, text } = await gateway.send("POST", PATHS[client], {
    bearer: mine.key,
    json: body,
  });
  expect(status).toBe(200);
  const receipt = await gateway.receipt({ headers }, mine.key);
  return { text, receipt: receipt.json };
}

const valuesOf = (stream: boolean, text: string): Loose[] =>
  stream
    ? framesOf(text).flatMap(({ data }) => (data === "[DONE]" ? [] : [JSON.parse(data)]))
    : [JSON.parse(text)];

/** Every usage that the client receives, in order. */
function usagesIn(client: SurfaceName, stream: boolean, text: string): Loose[] {
  return valuesOf(stream, text)
    .map((value) => (client === "responses" && stream ? value.response?.usage : value.usage))
    .filter((usage) => usage !== null && usage !== undefined);
}

const cases = SURFACE_NAMES.flatMap((client) =>
  SURFACE_NAMES.flatMap((on) =>
    Object.entries(WAYS).map(([way, [stream, ceiling]]) => ({ client, on, way, stream, ceiling })),
  ),
);

describe.each(cases)("$client client, host of $on, $way", (asking) => {
  const { client, stream } = asking;

  test("carries in its last usage, once, what the receipt says", async () => {
    changed = (answer) => answer;
    const { text, receipt } = await send(asking);
    expect(receipt.cost_usd).toBe(COST);
    const usages = usagesIn(client, stream, text);
    expect(usages.at(-1)).toMatchObject({ cost: COST });
    expect(usages.filter(({ cost }) => cost !== undefined)).toHaveLength(1);
  });

  test("by ours and not by the host's own", async () => {
    for (const cost of [0.5, null, { total_cost: 0.5 }]) {
      changed = (answer) => withUsage(answer, (usage) => ({ cost, ...usage, cost_details: { upstream: 1 } }));
      const { text, receipt } = await send(asking);
      expect(usagesIn(client, stream, text).at(-1)).toMatchObject({ cost: receipt.cost_usd });
    }
  });

  test("with the receipt's tokens, where the host tells none", async () => {
    changed = (answer) => withUsage(answer, () => undefined);
    const { text, receipt } = await send(asking);
    expect(receipt.tokens.source).toBe("counted");
    const [last] = usagesIn(client, stream, text).slice(-1);
    expect(last.cost).toBe(receipt.cost_usd);
    expect(last.completion_tokens ?? last.output_tokens).toBe(receipt.tokens.output);
  });

  test("in a form that the published types allow", async () => {
    changed = (answer) => answer;
    const { text } = await send(asking);
    const [event, whole] = TYPES[client];
    const values = valuesOf(stream, text).filter(({ type }) => type !== "ping");
    for (const value of values) expect(violations(stream ? event : whole, value, "host")).toEqual([]);
  });
});

const TYPES: Readonly<Record<SurfaceName, readonly [WireName, WireName]>> = {
  "chat.completions": ["chatChunk", "chatCompletion"],
  responses: ["responseEvent", "response"],
  messages: ["messageEvent", "message"],
};

/** The answer with its last usage changed; undefined leaves it out. */
function withUsage({ events, whole }: HostAnswer, change: (usage: object) => object | undefined): HostAnswer {
  const edit = (value: Loose): Loose => {
    if (value.usage) value.usage = change(value.usage);
    for (const part of [value.response, value.message]) if (part?.usage) part.usage = change(part.usage);
    return value;
  };
  return {
    events: events.flatMap((event) => {
      if (event.data === "[DONE]") return [event];
      const value = edit(JSON.parse(event.data));
      const isEmpty = value.choices?.length === 0 && value.usage === undefined;
      return isEmpty ? [] : [{ ...event, data: JSON.stringify(value) }];
    }),
    whole: edit(structuredClone(whole) as Loose),
  };
}

test.each([
  ["without a message_delta", (events: HostAnswer["events"]) => events.filter(isNoDelta), null],
  ["with text behind its message_delta", deltaBeforeText, "end_turn"],
])("a messages stream %s carries its cost all the same", async (_, change, reason) => {
  changed = (answer) => ({ ...answer, events: change(answer.events) });
  const { text, receipt } = await send({ client: "messages", on: "messages", stream: true, ceiling: 100 });
  const values = valuesOf(true, text);
  expect(usagesIn("messages", true, text).at(-1)).toMatchObject({
    cost: receipt.cost_usd,
    input_tokens: receipt.tokens.input,
    output_tokens: receipt.tokens.output,
  });
  expect(values.filter(({ usage }) => usage?.cost !== undefined)).toHaveLength(1);
  expect(values.slice(-2).map(({ type }) => type)).toEqual(["message_delta", "message_stop"]);
  for (const value of values.filter(({ type }) => type !== "ping"))
    expect(violations("messageEvent", value, "host")).toEqual([]);
  const client = new Anthropic({ apiKey: mine.key, baseURL: gateway.url, maxRetries: 0 });
  const messages = [{ role: "user" as const, content: "Hi" }];
  const message = await client.messages
    .stream({ model: "on/messages", max_tokens: 100, messages })
    .finalMessage();
  expect(message).toMatchObject({ stop_reason: reason, content: [{ text: "Hello there" }] });
});

const isNoDelta = ({ event }: HostAnswer["events"][number]) => event !== "message_delta";

function deltaBeforeText(events: HostAnswer["events"]): HostAnswer["events"] {
  const rest = events.filter(isNoDelta);
  rest.splice(2, 0, ...events.filter((one) => !isNoDelta(one)));
  return rest;
}

test.each(SURFACE_NAMES)(
  "a chat stream that asked for no usage carries no cost either, on %s",
  async (on) => {
    changed = (answer) => withUsage(answer, (usage) => ({ ...usage, cost: 0.5 }));
    const asking = { client: "chat.completions", on, stream: true, ceiling: 100 } as const;
    const { text } = await send(asking, { stream_options: undefined });
    expect(text).not.toContain('"usage":{');
    expect(text).not.toContain("cost");
  },
);

test("a request of the Open Tier reports a cost of nothing", async () => {
  const free = await open("");
  const { key } = await free.key(0);
  for (const stream of [true, false]) {
    const { text, status } = await free.send("POST", "/v1/messages", {
      bearer: key,
      json: { model: "sim/echo:free", max_tokens: 20, stream, messages: [{ role: "user", content: "Hi" }] },
    });
    expect([status, usagesIn("messages", stream, text).at(-1)?.cost]).toEqual([200, 0]);
  }
  await free.close();
});

describe("unmodified clients hand it on", () => {
  const openai = () => new OpenAI({ apiKey: mine.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
  const anthropic = () => new Anthropic({ apiKey: mine.key, baseURL: gateway.url, maxRetries: 0 });
  const messages = [{ role: "user" as const, content: "Hi" }];

  test.each(SURFACE_NAMES)("of OpenAI and Anthropic, on %s", async (on) => {
    changed = (answer) => answer;
    const model = `on/${on}`;
    const chat = await openai()
      .chat.completions.stream({ model, messages, stream_options: { include_usage: true } })
      .finalChatCompletion();
    const response = await openai().responses.stream({ model, input: "Hi" }).finalResponse();
    const message = await anthropic().messages.stream({ model, max_tokens: 100, messages }).finalMessage();
    const whole = await anthropic().messages.create({ model, max_tokens: 100, messages });
    const usages: unknown[] = [chat.usage, response.usage, whole.usage];
    for (const usage of usages) expect(usage).toMatchObject({ cost: COST });
    expect(message.content[0]).toMatchObject({ type: "text", text: "Hello there" });
  });

  test.each(SURFACE_NAMES)("and Vercel's AI SDK, on %s", async (on) => {
    const provider = createOpenAICompatible({
      name: "gateway",
      apiKey: mine.key,
      baseURL: `${gateway.url}/v1`,
      includeUsage: true,
    });
    const answer = streamText({ model: provider(`on/${on}`), prompt: "Hi", includeRawChunks: true });
    const raw: Loose[] = [];
    for await (const part of answer.fullStream) if (part.type === "raw") raw.push(part.rawValue as Loose);
    expect(raw.at(-1)?.usage).toMatchObject({ cost: COST });
    expect(await answer.text).toBe("Hello there");
    expect((await answer.usage).outputTokens).toBe(3);
  });
});
