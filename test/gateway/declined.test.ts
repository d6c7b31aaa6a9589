import { afterAll, afterEach, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { betaRefusalFallbackMiddleware } from "@anthropic-ai/sdk/lib/middleware";
import OpenAI from "openai";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import { json, sse } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { hopping } from "../fakes/hopping.ts";
import { type FakeRequest, startFakeHost } from "../fakes/host.ts";
import { refusal } from "../fakes/refusals.ts";
import { chatText, messagesText, responsesText } from "../fakes/transcripts.ts";
import { SocketClient } from "../fakes/web-socket.ts";
import { ADMIN } from "../process/gateway.ts";
import { rounds } from "../rounds.ts";
import { open } from "./open.ts";

/**
 * The official clients, unmodified, while hosts of three languages decline before any content, within it and after it. A
 * fourth host falls back by itself, wherever it is, for clients that name `fallbacks`. Whatever a model does is in its name at the host: `before`, `within`, `after` or `serves`.
 */
const WORDS = ["Hello", " there", "."];
const TEXT = {
  "chat.completions": chatText(WORDS),
  responses: responsesText(WORDS),
  messages: messagesText(WORDS),
};
const WRITTEN = { before: 0, within: 1, after: 3 } as const;
type Doing = keyof typeof WRITTEN;
const DOINGS = Object.keys(WRITTEN) as Doing[];

const surfaceOf = ({ path }: FakeRequest): SurfaceName =>
  path.endsWith("/chat/completions")
    ? "chat.completions"
    : path.endsWith("/messages")
      ? "messages"
      : "responses";

interface Sent {
  readonly model: Doing | "serves";
  readonly stream?: boolean;
  readonly fallbacks?: readonly { readonly model: string }[];
}

const host = await startFakeHost((request) => {
  const { model, stream, fallbacks = [] } = request.json() as Sent;
  const surface = surfaceOf(request);
  const refused = (doing: Doing) => WORDS.slice(0, WRITTEN[doing]);
  const answer =
    model === "serves"
      ? TEXT[surface]
      : fallbacks.length === 0
        ? refusal(surface, refused(model))
        : hopping(
            [
              { model, words: refused(model), input: 11, output: Math.max(1, WRITTEN[model]) },
              { model: `${fallbacks[0]!.model}-20261101`, words: WORDS, input: 13, output: 3 },
            ],
            { requested: model },
          );
  return stream === true ? sse(answer.events) : json(answer.whole);
});

type HostName = SurfaceName | "native";
const HOSTS: readonly HostName[] = [...SURFACE_NAMES, "native"];

const OWN_FALLBACK = "\n    fallbacks: [native/serves]";
const row = (surface: HostName, doing: Doing | "serves", price: string) => `
  - id: ${surface}/${doing}
    context_length: 100000
    max_output_tokens: 4000
    price: ${price}
    routes: [{ host: ${surface}, model: ${doing} }]${surface === "native" && doing !== "serves" ? OWN_FALLBACK : ""}`;
const gateway = await open(`
hosts:${SURFACE_NAMES.map(
  (surface) => `
  - { id: ${surface}, base_url: "${host.url}/v1", speaks: [${surface}], refusals: free }`,
).join("")}
  - { id: native, base_url: "${host.url}/native/v1", speaks: [messages], refusals: free, fallbacks: native }
models:${HOSTS.flatMap((surface) => [
  ...DOINGS.map((doing) => row(surface, doing, "{ input: 5, output: 25 }")),
  row(surface, "serves", "{ input: 2, output: 10 }"),
]).join("")}
price_lists: { partner: [{ model: native/serves, factor: 0.5 }] }
receipts: { sign: true }
auto: { declined: [messages/before, chat.completions/before, responses/serves] }
`);
const UNLIMITED = { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null };
const { key } = await gateway.key(50, UNLIMITED);
afterAll(() => closeAll(gateway, host));
const sockets: SocketClient[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.close();
});

const openai = new OpenAI({ apiKey: key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
const anthropic = new Anthropic({ apiKey: key, baseURL: gateway.url, maxRetries: 0 });
const MESSAGES = [{ role: "user" as const, content: "Hello" }];
const FALLBACKS_BETA = "server-side-fallback-2026-07-01";

/** What a client of this language sees of an answer, streamed by its own SDK. */
type Streaming = (model: string, next: string) => Promise<Seen>;
interface Seen {
  readonly text: string;
  readonly model: string;
  readonly ended: string | null;
  readonly receipt: string;
}

const STREAMING: Readonly<Record<SurfaceName, Streaming>> = {
  "chat.completions": async (model, next) => {
    const body = { model, messages: MESSAGES, stream: true as const, models: [next] };
    const { data, response } = await openai.chat.completions.create(body).withResponse();
    let [text, served, ended] = ["", "", null as string | null];
    for await (const chunk of data) {
      served = chunk.model;
      text += chunk.choices[0]?.delta.content ?? "";
      ended = chunk.choices[0]?.finish_reason ?? ended;
    }
    return { text, model: served, ended, receipt: response.headers.get("x-gateway-receipt")! };
  },
  responses: async (model, next) => {
    const body = { model, input: "Hello", stream: true as const, models: [next] };
    const { data, response } = await openai.responses.create(body).withResponse();
    let [text, served, ended] = ["", "", null as string | null];
    for await (const event of data) {
      if (event.type === "response.output_text.delta") text += event.delta;
      if (event.type !== "response.completed" && event.type !== "response.incomplete") continue;
      served = event.response.model;
      ended = event.response.incomplete_details?.reason ?? "completed";
    }
    return { text, model: served, ended, receipt: response.headers.get("x-gateway-receipt")! };
  },
  messages: async (model, next) => {
    const body = {
      model,
      max_tokens: 100,
      messages: MESSAGES,
      fallbacks: [{ model: next, max_tokens: 200 }],
    };
    const stream = anthropic.beta.messages.stream({ ...body, betas: [FALLBACKS_BETA] });
    const message = await stream.finalMessage();
    const { response } = await stream.withResponse();
    const [served] = (message.usage.iterations ?? []).filter(({ type }) => type === "fallback_message");
    if (served !== undefined)
      expect([message.model, "serves-20261101"]).toContain("model" in served ? served.model! : "");
    // Where the host itself went on, the first words are the first model's.
    const text = message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
    return {
      text,
      model: message.model,
      ended: message.stop_reason,
      receipt: response.headers.get("x-gateway-receipt")!,
    };
  },
};

const DECLINED: Readonly<Record<SurfaceName, string>> = {
  "chat.completions": "content_filter",
  responses: "content_filter",
  messages: "refusal",
};

/** The cost in USD of 11 tokens in and so many out. */
const costOf = (input: number, output: number, tokens: number) => (11 * input + tokens * output) / 1_000_000;

test("a declined stream goes on to the second model before any content, and never after", async () => {
  const count = rounds(144, 1_000);
  let hopped = 0;
  const streamed = async (n: number): Promise<void> => {
    const client = SURFACE_NAMES[n % 3]!;
    const speaks = HOSTS[Math.floor(n / 3) % 4]!;
    const doing = DOINGS[Math.floor(n / 12) % 3]!;
    const to = HOSTS[Math.floor(n / 36) % 4]!;
    const [model, next] = [`${speaks}/${doing}`, `${to}/serves`];
    const seen = await STREAMING[client](model, next);
    const receipt = (await gateway.send("GET", `/v1/receipts/${seen.receipt}`, { bearer: key })).json;
    const tokens = WRITTEN[doing];
    if (client === "messages" && speaks === "native" && to === "native") {
      hopped += 1;
      const text = [...WORDS.slice(0, tokens), ...WORDS].join("");
      expect(seen).toMatchObject({ text, model: next, ended: "end_turn" });
      const own = tokens === 0 ? 0 : costOf(5, 25, tokens);
      expect(receipt.model).toBe(next);
      expect(receipt.cost_usd).toBeCloseTo(own + (13 * 2 + 3 * 10) / 1_000_000, 12);
      expect(receipt.charges?.length).toBe(tokens === 0 ? undefined : 2);
      expect(receipt.attempts).toMatchObject([
        { model, outcome: "declined" },
        { model: next, outcome: "opened" },
      ]);
    } else if (doing === "before") {
      expect(seen).toMatchObject({ text: "Hello there.", model: next });
      expect(seen.ended).toMatch(/^(stop|completed|end_turn)$/);
      expect(receipt).toMatchObject({ model: next, cost_usd: costOf(2, 10, 3) });
      expect(receipt.attempts).toMatchObject([
        { model, outcome: "declined" },
        { model: next, outcome: "opened" },
      ]);
    } else {
      expect(seen).toMatchObject({ text: WORDS.slice(0, tokens).join(""), model, ended: DECLINED[client] });
      expect(receipt).toMatchObject({ model, cost_usd: costOf(5, 25, tokens) });
      expect(receipt.attempts).toMatchObject([{ model, outcome: "opened" }]);
    }
  };
  for (let n = 0; n < count; n += AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - n) }, (_, at) => streamed(n + at)));
  expect((await gateway.admin("/admin/ledger/audit")).json).toMatchObject({ ok: true, drifts: [] });
  const { data } = (await gateway.admin("/admin/hosts")).json;
  const routes = data.flatMap((one: { state: string; routes: { failed: number }[] }) =>
    one.routes.map(({ failed }) => [one.state, failed]),
  );
  expect(routes).toEqual(Array.from({ length: 16 }, () => ["available", 0]));
  expect(hopped).toBeGreaterThanOrEqual(Math.floor(count / 48));
}, 120_000);

const AT_ONCE = 27;

test("Anthropic's client has a host go on by itself, with its list and with the default, whole and streamed", async () => {
  const body = { model: "native/within", max_tokens: 100, messages: MESSAGES, betas: [FALLBACKS_BETA] };
  const list = [{ model: "native/serves", max_tokens: 50, thinking: null }];
  for (const fallbacks of [list, "default"] as const) {
    const first = host.requests.length;
    const whole = await anthropic.beta.messages.create({ ...body, fallbacks });
    const streamed = await anthropic.beta.messages.stream({ ...body, fallbacks }).finalMessage();
    for (const message of [whole, streamed]) {
      expect(message.model).toBe("native/serves");
      expect(message.content.map(({ type }) => type)).toEqual(["text", "fallback", "text"]);
      expect(message.content[1]).toMatchObject({
        from: { model: "native/within" },
        to: { model: "native/serves" },
      });
      expect(message.usage.iterations).toMatchObject([
        { type: "message", model: "within", input_tokens: 11, output_tokens: 1 },
        { type: "fallback_message", model: "serves-20261101", input_tokens: 13, output_tokens: 3 },
      ]);
    }
    expect(whole.usage).toMatchObject({ cost: (11 * 5 + 25 + 13 * 2 + 30) / 1_000_000 });
    const sent = host.requests.slice(first);
    expect(sent.map((request) => request.json().fallbacks[0].model)).toEqual(["serves", "serves"]);
    expect(sent[0]!.headers["anthropic-beta"]).toBe(FALLBACKS_BETA);
  }
});

test("each model of such an answer is charged at its price in the customer's list, and the signed receipt says so", async () => {
  const { key: bearer, balance_id } = await gateway.key(1, UNLIMITED);
  const path = `/admin/balances/${balance_id}`;
  await gateway.send("PATCH", path, { bearer: ADMIN, json: { price_list: "partner" } });
  const body = { model: "native/within", max_tokens: 100, messages: MESSAGES, fallbacks: "default" };
  const answer = await gateway.send("POST", "/v1/messages", { bearer, json: body });
  const own = (11 * 5 + 25) / 1_000_000;
  const next = (13 * 1 + 3 * 5) / 1_000_000;
  expect(answer.json.usage.cost).toBeCloseTo(own + next, 12);
  const receipt = `/v1/receipts/${answer.headers.get("x-gateway-receipt")}`;
  const plain = (await gateway.send("GET", receipt, { bearer })).json;
  expect(plain).toMatchObject({
    model: "native/serves",
    price_list: "partner",
    tokens: { input: 24, output: 4 },
    price: { input: 1, output: 5 },
    charges: [
      {
        model: "native/within",
        tokens: { input: 11, output: 1 },
        price: { input: 5, output: 25 },
        cost_usd: own,
      },
      {
        model: "native/serves",
        tokens: { input: 13, output: 3 },
        price: { input: 1, output: 5 },
        cost_usd: next,
      },
    ],
  });
  const headers = { accept: "application/jose" };
  const signed = (await gateway.send("GET", receipt, { bearer, headers })).text;
  const claims = JSON.parse(Buffer.from(signed.split(".")[1]!, "base64url").toString());
  expect(claims).toMatchObject({ charges: plain.charges, cost_usd: plain.cost_usd });
  const { available_usd: left } = (await gateway.send("GET", "/v1/me", { bearer })).json;
  expect(1 - left).toBeCloseTo(own + next, 12);
  expect((await gateway.admin("/admin/ledger/audit")).json).toMatchObject({ ok: true, drifts: [] });
});

test("Anthropic's refusal middleware goes on by itself, and each of its requests has its own receipt", async () => {
  const fallback = betaRefusalFallbackMiddleware([{ model: "messages/serves" }]);
  // Its logger would say that without it, later requests begin with the first model again.
  const logger = { ...console, warn: () => {} };
  const client = new Anthropic({
    apiKey: key,
    baseURL: gateway.url,
    maxRetries: 0,
    middleware: [fallback],
    logger,
  });
  const body = { model: "messages/before", max_tokens: 100, messages: MESSAGES };
  const first = host.requests.length;
  const message = await client.beta.messages.create(body);
  expect(message.content).toMatchObject([{ type: "fallback" }, { type: "text", text: "Hello there." }]);
  const streamed = await client.beta.messages.stream(body).finalMessage();
  expect(streamed.content).toMatchObject([{ type: "fallback" }, { type: "text", text: "Hello there." }]);
  const second = host.requests.slice(first).map((request) => request.json());
  expect(second.map(({ model }) => model)).toEqual(["before", "serves", "before", "serves"]);
  // The host makes up for the cache of the model that declined, by the token of its refusal.
  expect(second[1]).toMatchObject({ fallback_credit_token: { token: "fct_1", mode: "best_effort" } });
  const { data } = (await gateway.send("GET", "/v1/receipts?limit=4", { bearer: key })).json;
  expect(data.map(({ model, cost_usd: cost }: { model: string; cost_usd: number }) => [model, cost])).toEqual(
    [
      ["messages/serves", costOf(2, 10, 3)],
      ["messages/before", 0],
      ["messages/serves", costOf(2, 10, 3)],
      ["messages/before", 0],
    ],
  );
});

test("an automatic route, streamed over WebSocket, skips two models that decline", async () => {
  const socket = await SocketClient.open(gateway.url, key);
  sockets.push(socket);
  const events = await socket.turn({ model: "gateway/auto:declined", input: "Hello" });
  expect(events.at(-1)).toMatchObject({ response: { model: "responses/serves", status: "completed" } });
  expect(events.filter(({ type }) => type === "response.created")).toHaveLength(1);
});
