import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import type { GenerationAnswer, GenerationCall, Sink } from "../../src/generation/answer.ts";
import { ResponsesConnection } from "../../src/http/websocket/responses-connection.ts";
import { ByteBudget } from "../../src/units/byte-budget.ts";
import { systemClock } from "../../src/units/clock.ts";
import { ManualClock } from "../fakes/clock.ts";
import { CLOSE, CONTINUATION, frame, handshake, PING, PONG, TEXT } from "../fakes/frames.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { until } from "../fakes/until.ts";
import { SocketClient } from "../fakes/web-socket.ts";
import { RawClient } from "./raw-client.ts";
import { TestGateway } from "./test-gateway.ts";

/** A WebSocket as a client's end of an answer: how long it lasts, how much waits in it, and how it ends. */
let gateway: TestGateway;
let clock: ManualClock;
let key: string;
const sockets: SocketClient[] = [];

/** Answers the next turn with a stream that the test writes itself. */
let stream: Gate<{ sink: Sink; call: GenerationCall; finish: () => void }>;
beforeEach(async () => {
  clock = new ManualClock();
  gateway = new TestGateway({ clock });
  const made = await gateway.setUp();
  key = made.key;
  gateway.fund(made.balance_id);
  stream = gate();
  gateway.generate = async (call): Promise<GenerationAnswer> => ({
    kind: "stream",
    status: 200,
    headers: { "content-type": "text/event-stream", "x-gateway-receipt": "rcpt_stream" },
    run(sink) {
      const done = gate();
      stream.open({ sink, call, finish: () => done.open() });
      return done.passed;
    },
  });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.close();
  await gateway.stop();
});

async function connect(bearer = key, headers: Record<string, string> = {}): Promise<SocketClient> {
  const socket = await SocketClient.open(gateway.url, bearer, headers);
  sockets.push(socket);
  return socket;
}

const CREATE = { type: "response.create", model: "m", input: "Hi" };
const event = (type: string, more: object = {}) =>
  Buffer.from(`data: ${JSON.stringify({ type, ...more })}\n\n`);
const COMPLETED = event("response.completed", { response: { id: "resp_1", output: [] } });

describe("a connection", () => {
  test("ends after an hour, when its turn is over", async () => {
    const socket = await connect();
    socket.send(CREATE);
    const { sink, finish } = await stream.passed;
    for (let minute = 0; minute < 61; minute++) {
      clock.advance(60_000);
      socket.send({ type: "unknown" });
      expect((await socket.event()).type).toBe("error");
    }
    socket.send(CREATE);
    expect((await socket.event()).error.code).toBe("websocket_connection_limit_reached");
    await sink.write(COMPLETED);
    finish();
    expect((await socket.event()).type).toBe("response.completed");
    const closing = until(async () => {
      clock.advance(20_000);
      return gateway.deps.sockets.count === 0;
    });
    expect((await socket.event()).error.code).toBe("websocket_connection_limit_reached");
    expect((await socket.closed).code).toBe(1001);
    await closing;
  });

  test("ends after half an hour in which nothing was asked, and after minutes without an answer to pings", async () => {
    const idle = await connect();
    const silent = new RawClient(gateway.port);
    await silent.write(handshake(key));
    await silent.until((text) => text.includes("101"));
    for (let ms = 0; ms <= 140_000; ms += 20_000) {
      clock.advance(20_000);
      // Its answer to a ping arrives with this.
      idle.send({ type: "unknown" });
      await idle.event();
    }
    await silent.end();
    expect(gateway.deps.sockets.count).toBe(1);
    for (let ms = 140_000; ms < 1_820_000; ms += 20_000) {
      clock.advance(20_000);
      if (ms > 1_700_000) break;
      idle.send({ type: "unknown" });
      await idle.event();
    }
    await until(async () => {
      clock.advance(20_000);
      return gateway.deps.sockets.count === 0;
    });
    expect((await idle.closed).code).toBe(1001);
  });

  test("is closed when the gateway stops: at once, or when its turn is over, and begins no other", async () => {
    const [idle, busy] = [await connect(), await connect()];
    busy.send(CREATE);
    const { sink, finish } = await stream.passed;
    gateway.deps.sockets.leave();
    expect((await idle.closed).code).toBe(1001);
    expect(gateway.deps.sockets.areBusy).toBe(true);
    await sink.write(COMPLETED);
    finish();
    expect((await busy.event()).type).toBe("response.completed");
    expect((await busy.closed).code).toBe(1001);
    expect([gateway.calls.length, gateway.deps.sockets.areBusy]).toEqual([1, false]);
  });

  test("refuses turns that wait when the gateway stops, and those that come while it does, each on its lane", async () => {
    const socket = await connect();
    socket.send({ ...CREATE, stream_id: "a" });
    const { sink, finish } = await stream.passed;
    socket.send({ ...CREATE, stream_id: "a", input: "next" });
    socket.send({ type: "unknown" });
    expect((await socket.event()).error.code).toBe("invalid_request");
    gateway.deps.sockets.leave();
    const refused = { status: 503, headers: { "x-should-retry": "true", "retry-after": "1" } };
    expect(await socket.event()).toMatchObject({
      ...refused,
      stream_id: "a",
      error: { code: "model_unavailable", type: "api_error" },
    });
    socket.send({ ...CREATE, stream_id: "b" });
    expect(await socket.event()).toMatchObject({ ...refused, stream_id: "b" });
    await sink.write(COMPLETED);
    finish();
    expect((await socket.event()).type).toBe("response.completed");
    expect((await socket.closed).code).toBe(1001);
    expect(gateway.calls.length).toBe(1);
  });

  test("tells the request that its client left", async () => {
    const socket = await connect();
    socket.send(CREATE);
    const { sink, call, finish } = await stream.passed;
    const left = new Promise((aborted) => call.signal.addEventListener("abort", aborted));
    socket.terminate();
    await left;
    expect(await sink.write(COMPLETED)).toBe(false);
    finish();
  });

  test("gives each turn the opening request's headers, but for those of that request alone", async () => {
    const socket = await connect(key, {
      "idempotency-key": "once",
      "openai-beta": "responses_websockets=2026-02-06",
      "session-id": "s1",
      "x-gateway-run": "r1",
    });
    socket.send(CREATE);
    const { call, finish } = await stream.passed;
    expect(
      [...call.headers.keys()].filter((name) => /^(sec-|upgrade|connection|idem|openai)/.test(name)),
    ).toEqual([]);
    expect([call.headers.get("session-id"), call.headers.get("x-gateway-run")]).toEqual(["s1", "r1"]);
    finish();
  });
});

/** A client that reads nothing of what it is sent once it is connected. */
async function unread(): Promise<RawClient> {
  const client = new RawClient(gateway.port);
  await client.write(handshake(key));
  await client.until((text) => text.includes("101"));
  client.pause();
  return client;
}

test("who does not read what they are sent is waited for, and not sent more than fits on the way", async () => {
  const client = await unread();
  await client.write(frame(TEXT, JSON.stringify(CREATE)));
  const { sink, finish } = await stream.passed;
  const delta = event("response.output_text.delta", { delta: "x".repeat(1_000) });
  let written = 0;
  let taken: boolean | Promise<boolean> = true;
  while (taken === true && written < 100_000_000) {
    taken = sink.write(delta);
    written += delta.length;
  }
  expect(taken).toBeInstanceOf(Promise);
  expect(written).toBeLessThan(20_000_000);
  // Another sink of the connection waits as well, and both go on once the client reads.
  const more = sink.write(delta);
  expect(more).toBeInstanceOf(Promise);
  client.resume();
  expect([await taken, await more]).toEqual([true, true]);
  finish();
  client.leave();
});

test("who sends pings while they are behind goes on once they read again", async () => {
  const client = await unread();
  await client.write(frame(TEXT, JSON.stringify(CREATE)));
  const { sink, finish } = await stream.passed;
  const delta = event("response.output_text.delta", { delta: "x".repeat(100_000) });
  let taken: boolean | Promise<boolean> = true;
  while (taken === true) taken = sink.write(delta);
  const activity = spyOn(ResponsesConnection.prototype, "noteActivity");
  for (let pings = 1; pings <= 5; pings++) {
    await client.write(frame(PING, ""));
    await until(() => activity.mock.calls.length >= pings);
  }
  activity.mockRestore();
  client.resume();
  expect(await taken).toBe(true);
  finish();
  client.leave();
});

test("who takes nothing for minutes is not served any longer, however often they send a ping", async () => {
  const activity = spyOn(ResponsesConnection.prototype, "noteActivity");
  const client = await unread();
  await client.write(frame(TEXT, JSON.stringify(CREATE)));
  const { sink, call, finish } = await stream.passed;
  const delta = event("response.output_text.delta", { delta: "x".repeat(100_000) });
  let taken: boolean | Promise<boolean> = true;
  while (taken === true) taken = sink.write(delta);
  for (let checks = 0; checks < 12 && !call.signal.aborted; checks++) {
    const before = activity.mock.calls.length;
    await client.write(frame(PING, ""));
    await until(() => activity.mock.calls.length > before || call.signal.aborted);
    clock.advance(20_000);
  }
  activity.mockRestore();
  expect(await taken).toBe(false);
  expect([call.signal.aborted, gateway.deps.sockets.count]).toEqual([true, 0]);
  finish();
});

test("who causes errors and reads none of them is not served any longer", async () => {
  const client = await unread();
  const wrong = Buffer.concat(Array.from({ length: 1_000 }, () => frame(TEXT, "{}")));
  await until(async () => !(await client.write(wrong)) || gateway.deps.sockets.count === 0);
  expect(gateway.deps.sockets.count).toBe(0);
});

describe("how many there may be", () => {
  test("without the credit for a large message: two of a balance, four of a network, 16 in all; beyond, requests are sent", async () => {
    const from = (network: number) => ({ "x-forwarded-for": `198.18.${network}.1` });
    const unpaid = async () => (await gateway.setUp()).key;
    const upgraded = (bearer: string, network: number) =>
      connect(bearer, from(network)).then(
        () => true,
        () => false,
      );
    const one = await unpaid();
    expect([await upgraded(one, 1), await upgraded(one, 2), await upgraded(one, 3)]).toEqual([
      true,
      true,
      false,
    ]);
    for (let n = 0; n < 3; n++) expect(await upgraded(await unpaid(), 1)).toBe(true);
    expect(await upgraded(await unpaid(), 1)).toBe(false);
    for (let n = 10; n < 21; n++) expect(await upgraded(await unpaid(), n)).toBe(true);
    expect(await upgraded(await unpaid(), 30)).toBe(false);
    const refused = await fetch(`${gateway.url}/v1/responses`, {
      headers: { authorization: `Bearer ${one}`, connection: "upgrade", upgrade: "websocket", ...from(30) },
    });
    expect(refused.status).toBe(426);
    // Who pays has places of their own.
    for (let n = 0; n < 20; n++) await connect(key, from(1));
    for (const socket of sockets.splice(0)) socket.close();
    await until(() => gateway.deps.sockets.count === 0);
    expect(await upgraded(one, 1)).toBe(true);
  });

  test("of a balance that pays, a quarter of those that memory allows; a network has half", async () => {
    const funded = async () => {
      const made = await gateway.setUp();
      gateway.fund(made.balance_id);
      return made.key;
    };
    for (const paying of [key, await funded()]) {
      for (let n = 0; n < 32; n++) await connect(paying);
      await expect(connect(paying)).rejects.toThrow();
    }
    await expect(connect(await funded())).rejects.toThrow();
    await connect(await funded(), { "x-forwarded-for": "198.18.7.1" });
    expect(gateway.deps.sockets.count).toBe(65);
  });
});

/** Messages of up to 100,000 bytes, with memory for eight connections and for two bodies of a megabyte. */
describe("messages in the making", () => {
  const bodies = new ByteBudget(3_600_000, systemClock);
  let small: TestGateway;
  let paying: string;
  beforeEach(async () => {
    const settings = () => ({ bodyBytes: 1_000_000, bodyMemoryBytes: 3_600_000 });
    small = new TestGateway({ clock, socketRoom: { messageBytes: 100_000, bodies, settings } });
    const made = await small.setUp();
    small.fund(made.balance_id);
    paying = made.key;
  });
  const clients: RawClient[] = [];
  afterEach(async () => {
    for (const client of clients.splice(0)) client.leave();
    await small.stop();
  });

  const opened = async (bearer: string, from: string, more = ""): Promise<[RawClient, string]> => {
    const client = new RawClient(small.port);
    clients.push(client);
    await client.write(handshake(bearer, `x-forwarded-for: ${from}\r\n${more}`));
    return [client, (await client.until((text) => text.includes("\r\n\r\n"))).slice(9, 12)];
  };

  test("take their memory when the connection opens, and give it back when it closes", async () => {
    const statuses: string[] = [];
    const part = "x".repeat(50_000);
    for (let n = 0; n < 12; n++) {
      const made = await small.setUp();
      small.fund(made.balance_id);
      const [client, status] = await opened(made.key, `198.18.${n}.1`);
      statuses.push(status);
      // Half a message, as a part of one frame or as the first of several.
      await client.write(frame(TEXT, part, n % 2 === 0 ? { declared: 100_000 } : { last: false }));
    }
    // One of eight is for senders without credit.
    expect(statuses).toEqual([...Array(7).fill("101"), ...Array(5).fill("426")]);
    expect(bodies.taken).toBe(7 * 200_000);
    for (const client of clients) client.leave();
    await until(() => bodies.taken === 0);
  });

  test("find no memory where large bodies have all of it; then requests are sent", async () => {
    const release = bodies.takeNow(3_500_000)!;
    const [client, status] = await opened(paying, "198.18.0.1");
    expect([status, bodies.taken]).toEqual(["426", 3_500_000]);
    await client.until((text) => text.includes("no memory left for another WebSocket"));
    release();
    expect((await opened(paying, "198.18.0.1"))[1]).toBe("101");
  });

  const part = "x".repeat(60_000);
  test.each<[string, Buffer[]]>([
    ["a frame's head that declares more than may be sent", [frame(TEXT, "x", { declared: 100_001 })]],
    [
      "fragments that come to more together",
      [frame(TEXT, part, { last: false }), frame(CONTINUATION, part, { last: false })],
    ],
  ])("%s: closed with 1009, and the session sends requests for ten minutes", async (_name, frames) => {
    const session = "thread-id: one\r\n";
    const [client] = await opened(paying, "198.18.0.1", session);
    for (const bytes of frames) await client.write(bytes);
    const received = await client.end();
    const closing = Buffer.from(received, "latin1").subarray(received.indexOf("\r\n\r\n") + 4);
    expect([closing[0], closing.readUInt16BE(2)]).toEqual([0x80 | CLOSE, 1009]);
    await until(() => small.deps.sockets.count === 0);
    const [refused, status] = await opened(paying, "198.18.0.1", session);
    expect(status).toBe("426");
    await refused.until((text) => text.includes("sent a message of more than 100000 bytes"));
    expect((await opened(paying, "198.18.0.1", "thread-id: another\r\n"))[1]).toBe("101");
    clock.advance(600_000);
    expect((await opened(paying, "198.18.0.1", session))[1]).toBe("101");
  });

  test("who finishes no message within two minutes is disconnected, though they answer pings", async () => {
    const [client] = await opened(paying, "198.18.0.1");
    await client.write(frame(TEXT, "x", { last: false }));
    const activity = spyOn(ResponsesConnection.prototype, "noteActivity");
    for (let ms = 0; ms < 140_000; ms += 20_000) {
      const before = activity.mock.calls.length;
      await client.write(frame(PONG, ""));
      await until(() => activity.mock.calls.length > before || small.deps.sockets.count === 0);
      clock.advance(20_000);
    }
    activity.mockRestore();
    await client.end();
    await until(() => small.deps.sockets.count === 0);
  });
});

test("turns that wait or are answered on a connection have as many bytes together as one message may have", async () => {
  const socket = await connect();
  const input = "x".repeat(60_000);
  socket.send({ ...CREATE, input });
  const { finish } = await stream.passed;
  socket.send({ ...CREATE, input, stream_id: "beside" });
  const { error } = await socket.event();
  expect([error.code, error.message]).toEqual([
    "rate_limited",
    expect.stringContaining("100000 bytes together"),
  ]);
  finish();
});
