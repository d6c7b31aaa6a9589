import { afterAll, afterEach, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { betaRefusalFallbackMiddleware } from "@anthropic-ai/sdk/lib/middleware";
import OpenAI from "openai";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import { json, sse } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { type FakeRequest, startFakeHost } from "../fakes/host.ts";
import { refusal } from "../fakes/refusals.ts";
import { chatText, messagesText, responsesText } from "../fakes/transcripts.ts";
import { SocketClient } from "../fakes/web-socket.ts";
import { rounds } from "../rounds.ts";
import { open } from "./open.ts";

/**
 * The official clients, unmodified, while hosts of three languages decline before any content, within it and after it.
 * Whatever a model does is in its name at the host: `before`, `within`, `after` or `serves`.
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

const host = await startFakeHost((request) => {
  const { model, stream } = request.json() as { model: Doing | "serves"; stream?: boolean };
  const surface = surfaceOf(request);
  const answer = model === "serves" ? TEXT[surface] : refusal(surface, WORDS.slice(0, WRITTEN[model]));
  return stream === true ? sse(answer.events) : json(answer.whole);
});

const row = (surface: SurfaceName, doing: Doing | "serves", price: string) => `
  - id: ${surface}/${doing}
    context_length: 100000
    max_output_tokens: 4000
    price: ${price}
    routes: [{ host: ${surface}, model: ${doing} }]`;
const gateway = await open(`
hosts:${SURFACE_NAMES.map(
  (surface) => `
  - { id: ${surface}, base_url: "${host.url}/v1", speaks: [${surface}], refusals: free }`,
).join("")}
models:${SURFACE_NAMES.flatMap((surface) => [
  ...DOINGS.map((doing) => row(surface, doing, "{ input: 5, output: 25 }")),
  row(surface, "serves", "{ input: 2, output: 10 }"),
]).join("")}
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
    if (served !== undefined) expect(served).toMatchObject({ model: message.model });
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
  const count = rounds(108, 1_000);
  const streamed = async (n: number): Promise<void> => {
    const client = SURFACE_NAMES[n % 3]!;
    const speaks = SURFACE_NAMES[Math.floor(n / 3) % 3]!;
    const doing = DOINGS[Math.floor(n / 9) % 3]!;
    const next = `${SURFACE_NAMES[Math.floor(n / 27) % 3]!}/serves`;
    const model = `${speaks}/${doing}`;
    const seen = await STREAMING[client](model, next);
    const receipt = (await gateway.send("GET", `/v1/receipts/${seen.receipt}`, { bearer: key })).json;
    if (doing === "before") {
      expect(seen).toMatchObject({ text: "Hello there.", model: next });
      expect(seen.ended).toMatch(/^(stop|completed|end_turn)$/);
      expect(receipt).toMatchObject({ model: next, cost_usd: costOf(2, 10, 3) });
      expect(receipt.attempts).toMatchObject([
        { model, outcome: "declined" },
        { model: next, outcome: "opened" },
      ]);
    } else {
      const tokens = WRITTEN[doing];
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
  expect(routes).toEqual(Array.from({ length: 12 }, () => ["available", 0]));
}, 120_000);

const AT_ONCE = 27;

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
