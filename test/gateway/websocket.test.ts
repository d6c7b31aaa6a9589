import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { json, sse } from "../fakes/behaviours.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { type FakeRequest, startFakeHost } from "../fakes/host.ts";
import { chatText, messagesText, responsesText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { SocketClient, type SocketEvent } from "../fakes/web-socket.ts";
import { type OpenGateway, open } from "./open.ts";

/**
 * The Responses API over WebSocket, on hosts of each language: a turn is a request like any other, and what it continues
 * is known to its connection.
 */
const LANGUAGES = ["chat", "messages", "responses"] as const;
type Language = (typeof LANGUAGES)[number];

const UNLIMITED = { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null };
const sockets: SocketClient[] = [];
/** What answers to "wait for it" wait for before they end. */
let waiting: Gate<void> = gate();

const WHOLE = {
  chat: () => chatText(["Good ", "day"]),
  messages: () => messagesText(["Good ", "day"]),
  responses: () => responsesText(["Good ", "day"]),
};

const host = await startFakeHost((request) => {
  const { stream } = request.json();
  const language = request.path.endsWith("/chat/completions")
    ? "chat"
    : request.path.endsWith("/messages")
      ? "messages"
      : "responses";
  const held = request.text().includes("wait for it") ? waiting : null;
  if (request.text().includes("break it")) return json({ error: { message: "no" } }, 400);
  const { events, whole } = WHOLE[language]();
  const before = async (n: number) => (n === events.length - 1 ? held?.passed : undefined);
  return stream === true ? sse(events, { before }) : json(whole);
});
const served = (id: string) => `
  - id: test/${id}
    context_length: 100000
    max_output_tokens: 4000
    price: { input: 1, output: 10 }
    routes: [{ host: ${id}, model: host-model }]`;
const gateway = await open(`
websocket_message_bytes: 10000000
body_memory_bytes: 1000000000
hosts:
  - { id: chat, base_url: "${host.url}/v1", speaks: [chat.completions] }
  - { id: messages, base_url: "${host.url}/v1", speaks: [messages] }
  - { id: responses, base_url: "${host.url}/v1", speaks: [responses] }
  - { id: gone, base_url: "http://127.0.0.1:1/v1", speaks: [chat.completions] }
models:${LANGUAGES.map(served).join("")}
  - id: test/two
    context_length: 100000
    max_output_tokens: 4000
    price: { input: 1, output: 10 }
    routes: [{ host: gone, model: m }, { host: messages, model: m }]
`);
const key = (await gateway.key(50, UNLIMITED)).key;
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.close();
});
afterAll(async () => {
  await gateway.close();
  await host.close();
});

const connect = async (): Promise<SocketClient> => {
  const socket = await SocketClient.open(gateway.url, key);
  sockets.push(socket);
  return socket;
};

/** What the host was asked last, as text. */
const lastRequest = (): FakeRequest => host.requests.at(-1)!;

const codeOf = ({ type, status, error }: SocketEvent) => [type, status, error?.code];
const NOT_FOUND = ["error", 400, "previous_response_not_found"];

describe.each(LANGUAGES)("on a host of %s", (language: Language) => {
  const model = `test/${language}`;

  test("a turn has the events of a streamed answer, and a receipt", async () => {
    const socket = await connect();
    const events = await socket.turn({ model, input: "Hello", stream: true, store: false });
    expect(events[0]!.type).toBe("response.created");
    expect(events.map(({ sequence_number: at }) => at)).toEqual(events.map((_event, at) => at));
    expect(
      events.filter(({ type }) => type === "response.output_text.delta").map(({ delta }) => delta),
    ).toEqual(["Good ", "day"]);
    const last = events.at(-1)!;
    expect([last.type, last.response.model]).toEqual(["response.completed", model]);
    expect(last.response.usage.cost).toBeGreaterThan(0);
    const receipt = events[0]!.headers["x-gateway-receipt"];
    const { json: found } = await gateway.send("GET", `/v1/receipts/${receipt}`, { bearer: key });
    expect(found).toMatchObject({ state: "settled", surface: "responses", stream: true });
    expect(found.cost_usd).toBe(last.response.usage.cost);
  });

  test("a continuation sends new input alone, and the host is sent the whole conversation", async () => {
    const socket = await connect();
    const first = await socket.end({ model, input: "My name is Ada", store: false });
    const input = [{ type: "message", role: "user", content: "What is my name" }];
    const previous_response_id = first.response.id;
    expect((await socket.end({ model, input, previous_response_id })).type).toBe("response.completed");
    const sent = lastRequest().text();
    const positions = ["My name is Ada", "Good day", "What is my name"].map((text) => sent.indexOf(text));
    expect(positions.includes(-1)).toBe(false);
    expect(positions).toEqual([...positions].sort((one, other) => one - other));
    expect(sent).not.toContain("previous_response_id");
  });

  test("turns that are sent at once are answered one after another", async () => {
    const socket = await connect();
    for (const input of ["one", "two", "three"]) socket.create({ model, input });
    const ids: string[] = [];
    for (let turn = 0; turn < 3; turn++) {
      const events = await socket.turn();
      expect(new Set(events.map(({ response }) => response?.id).filter(Boolean)).size).toBe(1);
      ids.push(events.at(-1)!.type);
    }
    expect(ids).toEqual(["response.completed", "response.completed", "response.completed"]);
  });

  test("a warm-up is answered here, and what it brought is continued", async () => {
    const socket = await connect();
    const before = host.requests.length;
    const instructions = [{ type: "message", role: "developer", content: "Be brief" }];
    const events = await socket.turn({ model, input: instructions, generate: false, stream: true });
    expect(events.map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.completed",
    ]);
    const { response } = events.at(-1)!;
    expect([response.output, response.usage.total_tokens, host.requests.length]).toEqual([[], 0, before]);
    await socket.end({ model, input: "Hello", previous_response_id: response.id });
    expect(lastRequest().text()).toContain("Be brief");
  });

  test("a turn that fails is forgotten with what it continued", async () => {
    const socket = await connect();
    const { response } = await socket.end({ model, input: "Hello" });
    const previous_response_id = response.id;
    const failed = await socket.end({ model, input: "break it", previous_response_id });
    expect(codeOf(failed)).toEqual(["error", 400, "invalid_request"]);
    expect(codeOf(await socket.end({ model, input: "Hello", previous_response_id }))).toEqual(NOT_FOUND);
    expect((await socket.end({ model, input: "Hello" })).type).toBe("response.completed");
  });

  test("the result of a call that nobody made is refused", async () => {
    const socket = await connect();
    const { response } = await socket.end({ model, input: "Hello" });
    const input = [{ type: "function_call_output", call_id: "call_unknown", output: "4" }];
    const failed = await socket.end({ model, input, previous_response_id: response.id });
    expect(codeOf(failed)).toEqual(["error", 400, "invalid_request"]);
    expect(failed.error.param).toBe("input[0].call_id");
  });
});

const model = "test/chat";

describe("lanes", () => {
  test("answers of different lanes run in parallel, each event with its lane's name", async () => {
    waiting = gate();
    const socket = await connect();
    socket.create({ model, input: "wait for it", stream_id: "slow" });
    expect((await socket.event()).stream_id).toBe("slow");
    socket.create({ model, input: "Hello", stream_id: "quick" });
    socket.create({ model, input: "Hello" });
    const lanes = { slow: [] as string[], quick: [] as string[], none: [] as string[] };
    for (let ended = 0; ended < 3; ) {
      const { type, stream_id = "none" } = await socket.event();
      lanes[stream_id as keyof typeof lanes].push(type);
      if (type !== "response.completed") continue;
      if (++ended === 2) waiting.open();
    }
    for (const types of Object.values(lanes)) expect(types.at(-1)).toBe("response.completed");
  });

  test("a fork in another lane that fails leaves the parent", async () => {
    const socket = await connect();
    const { response } = await socket.end({ model, input: "Hello", stream_id: "a" });
    const fork = { model, previous_response_id: response.id, stream_id: "b" };
    const failed = await socket.end({ ...fork, input: "break it" });
    expect([failed.type, failed.stream_id]).toEqual(["error", "b"]);
    const again = { model, previous_response_id: response.id, stream_id: "a", input: "Hello" };
    expect((await socket.end(again)).type).toBe("response.completed");
  });

  test("there are at most 32 names of them, and the default one besides", async () => {
    const socket = await connect();
    const warm = { model, generate: false, input: "x" };
    for (let n = 0; n < 32; n++)
      expect((await socket.end({ ...warm, stream_id: `lane.${n}` })).type).toBe("response.completed");
    const refused = await socket.end({ ...warm, stream_id: "one_more" });
    expect([...codeOf(refused), refused.stream_id]).toEqual([
      "error",
      400,
      "websocket_stream_limit_reached",
      "one_more",
    ]);
    expect((await socket.end(warm)).type).toBe("response.completed");
  });
});

test.each<[string, object | string | Uint8Array, string, string | null]>([
  ["no JSON", "hello", "invalid_request", null],
  ["no object", "[]", "invalid_request", null],
  ["half an object", '{"type":"response.create","model":"m"', "invalid_request", null],
  ["a binary message", new Uint8Array([1, 2, 3]), "invalid_request", null],
  ["nothing", "", "invalid_request", null],
  ["another type", { type: "response.steer" }, "invalid_request", "type"],
  ["a type that is none", { type: 7 }, "invalid_request", "type"],
  ["a type twice", '{"type":"response.create","type":"x"}', "invalid_request", "type"],
  [
    "an input with an escape in its name",
    '{"type":"response.create","inp\\u0075t":"x"}',
    "invalid_request",
    "input",
  ],
  ["no model", { type: "response.create", input: "Hi" }, "invalid_request", "model"],
  ["no input", { type: "response.create", model }, "invalid_request", "input"],
  ["an input that is a number", { type: "response.create", model, input: 7 }, "invalid_request", "input"],
  [
    "an unknown model",
    { type: "response.create", model: "test/none", input: "Hi" },
    "unknown_model",
    "model",
  ],
  [
    "in the background",
    { type: "response.create", model, input: "Hi", background: true },
    "invalid_request",
    "background",
  ],
  ["to be stored", { type: "response.create", model, input: "Hi", store: true }, "invalid_request", "store"],
  [
    "an empty lane",
    { type: "response.create", model, input: "Hi", stream_id: "" },
    "invalid_stream_id",
    "stream_id",
  ],
  [
    "a lane with a space",
    { type: "response.create", model, input: "Hi", stream_id: "a b" },
    "invalid_stream_id",
    "stream_id",
  ],
  [
    "what nobody answered",
    { type: "response.create", model, input: "Hi", previous_response_id: "resp_x" },
    "previous_response_not_found",
    "previous_response_id",
  ],
  [
    "a conversation",
    { type: "response.create", model, input: "Hi", conversation: "conv_x" },
    "invalid_request",
    "conversation",
  ],
])("an event with %s is refused, and the connection goes on", async (_, event, code, param) => {
  const socket = await connect();
  socket.send(event);
  const error = await socket.event();
  expect([error.type, error.error.code, error.error.param]).toEqual(["error", code, param]);
  expect(error.status).toBe(code === "unknown_model" ? 404 : 400);
  expect(typeof error.error.message).toBe("string");
  expect((await socket.end({ model, input: "Hello" })).type).toBe("response.completed");
});

test("what one connection was answered, another does not know", async () => {
  const first = await connect();
  const { response } = await first.end({ model, input: "Hello", store: false });
  const second = await connect();
  const again = { model, input: "Hello", previous_response_id: response.id };
  expect(codeOf(await second.end(again))).toEqual(NOT_FOUND);
  expect((await second.end({ model, input: "Hello" })).type).toBe("response.completed");
  expect((await first.end(again)).type).toBe("response.completed");
});

test("a conversation that was shortened goes on from there", async () => {
  const socket = await connect();
  const { response } = await socket.end({ model, input: "We launch on Tuesday" });
  const input = [{ type: "compaction_trigger" }];
  const compacted = await socket.end({ model, input, previous_response_id: response.id });
  expect(compacted.response.output.map(({ type }: SocketEvent) => type)).toEqual(["compaction"]);
  const next = { model, input: "When", previous_response_id: compacted.response.id };
  expect((await socket.end(next)).type).toBe("response.completed");
  expect(lastRequest().text()).toContain("Summary of the conversation");
  expect(lastRequest().text()).not.toContain("We launch on Tuesday");
});

test("a large conversation is continued with few bytes", async () => {
  const socket = await connect();
  const { response } = await socket.end({ model, input: "word ".repeat(60_000) });
  const next = await socket.end({ model, input: "And now", previous_response_id: response.id });
  expect(next.type).toBe("response.completed");
  expect(lastRequest().body.length).toBeGreaterThan(300_000);
});

test("a conversation that grew beyond the largest request is refused", async () => {
  const socket = await connect();
  const input = "x".repeat(6 * 1024 * 1024);
  const { response } = await socket.end({ model, input, generate: false });
  const error = await socket.end({ model, input, previous_response_id: response.id });
  expect(codeOf(error)).toEqual(["error", 413, "payload_too_large"]);
});

test("who leaves in the middle of an answer is charged for what they were given, and nothing stays held", async () => {
  waiting = gate();
  const { key: leaver } = await gateway.key(1);
  const socket = await SocketClient.open(gateway.url, leaver);
  socket.create({ model, input: "wait for it" });
  const { headers } = await socket.event();
  for (;;) if ((await socket.event()).type === "response.output_text.delta") break;
  socket.terminate();
  await (await host.arrived(host.requests.length - 1)).gone;
  const receipt = () =>
    gateway.send("GET", `/v1/receipts/${headers["x-gateway-receipt"]}`, { bearer: leaver });
  await until(async () => (await receipt()).json.state === "cancelled");
  expect((await gateway.send("GET", "/v1/me", { bearer: leaver })).json.held_usd).toBe(0);
  waiting.open();
});

test("a turn goes to the next host where one cannot be reached, and is charged once", async () => {
  const { key: payer } = await gateway.key(1);
  const socket = await SocketClient.open(gateway.url, payer);
  const events = await socket.turn({ model: "test/two", input: "Hello" });
  expect(events.at(-1)!.type).toBe("response.completed");
  const { json: found } = await gateway.send("GET", "/v1/receipts?limit=10", { bearer: payer });
  expect(found.data).toHaveLength(1);
  expect(found.data[0]).toMatchObject({ id: events[0]!.headers["x-gateway-receipt"], host: "messages" });
  socket.close();
});

test("a key that was revoked is refused with its next turn", async () => {
  const made = await gateway.key(1);
  const socket = await SocketClient.open(gateway.url, made.key);
  expect((await socket.end({ model, input: "Hello" })).type).toBe("response.completed");
  await gateway.send("DELETE", `/v1/keys/${made.id}`, { bearer: made.recovery_secret });
  expect(codeOf(await socket.end({ model, input: "Hello" }))).toEqual(["error", 401, "invalid_api_key"]);
  expect(codeOf(await socket.end({ model, input: "Hello", generate: false }))).toEqual([
    "error",
    401,
    "invalid_api_key",
  ]);
  socket.close();
});

type Made = Awaited<ReturnType<OpenGateway["key"]>>;
test.each<[string, number, (made: Made) => Promise<unknown>]>([
  [
    "whose key was revoked",
    2,
    ({ id, recovery_secret }) => gateway.send("DELETE", `/v1/keys/${id}`, { bearer: recovery_secret }),
  ],
  [
    "who was suspended",
    2,
    ({ balance_id }) => gateway.admin(`/admin/accounts/${balance_id}/suspend`, { reason: "chargeback" }),
  ],
  [
    "whose credit is gone",
    1,
    ({ balance_id }) =>
      gateway.admin("/admin/debits", { balance_id, amount_usd: "all", idempotency_key: balance_id }),
  ],
])("one %s has large messages read as seldom as who could never pay", async (_, checks, end) => {
  const made = await gateway.key(1000, UNLIMITED);
  const socket = await SocketClient.open(gateway.url, made.key);
  await end(made);
  const input = "word ".repeat(1_600_000);
  const codes: unknown[] = [];
  for (let n = 0; n < 5 && codes.at(-1) !== "rate_limited"; n++)
    codes.push((await socket.end({ model, input })).error.code);
  expect([codes.length, codes.at(-1)]).toEqual([checks + 1, "rate_limited"]);
  expect((await socket.closed).code).toBe(1008);
});

test("a rate that is reached is reported with the seconds to wait", async () => {
  const { key: slow } = await gateway.key(10, { rpm_limit: 1 });
  const socket = await SocketClient.open(gateway.url, slow);
  await socket.end({ model, input: "Hello" });
  const error = await socket.end({ model, input: "Hello" });
  expect(codeOf(error)).toEqual(["error", 429, "rate_limited"]);
  expect(Number(error.headers["retry-after"])).toBeGreaterThan(0);
  expect(error.error.headers).toEqual(error.headers);
  socket.close();
});
