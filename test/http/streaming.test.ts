import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import type { GenerationAnswer, GenerationCall, Sink } from "../../src/generation/answer.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { RawClient, readResponse } from "./raw-client.ts";
import { TestGateway } from "./test-gateway.ts";

const gateway = new TestGateway();
const key = (await gateway.setUp()).key;
afterAll(() => gateway.stop());

const REQUEST = (path = "/v1/chat/completions") =>
  `POST ${path} HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer ${key}\r\nContent-Length: 2\r\n\r\n{}`;
const bytes = (text: string) => new TextEncoder().encode(text);

/** Answers the next request with a stream that the test writes itself. */
let stream: Gate<{ sink: Sink; call: GenerationCall; finish: () => void }>;
beforeEach(() => {
  stream = gate();
  gateway.generate = async (call): Promise<GenerationAnswer> => ({
    kind: "stream",
    status: 200,
    headers: {
      "content-type": "text/event-stream",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
      "x-gateway-receipt": "rcpt_stream",
    },
    run(sink) {
      const done = gate();
      stream.open({ sink, call, finish: () => done.open() });
      return done.passed;
    },
  });
});

async function open(client: RawClient) {
  await client.write(REQUEST());
  const opened = await stream.passed;
  return { ...opened, write: (text: string) => opened.sink.write(bytes(text)) };
}

describe("a streamed answer", () => {
  test("arrives event by event, with the answer's own headers", async () => {
    const client = new RawClient(gateway.port);
    const { sink, write, finish } = await open(client);
    for (const event of ["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"]) {
      expect(await write(event)).toBe(true);
      // The next event is written only once this one is there: nothing waits for company.
      await client.until((text) => text.includes(event));
    }
    sink.close();
    finish();
    const { status, headers, body } = readResponse(await client.until((text) => text.endsWith("0\r\n\r\n")));
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "content-type": "text/event-stream",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
      "x-gateway-receipt": "rcpt_stream",
    });
    expect(body).toBe("data: 1\n\ndata: 2\n\ndata: 3\n\n");
    client.leave();
  });

  test("keeps characters that are cut anywhere", async () => {
    const text = "data: żółć 漢字 🧑‍🚀 é\n\n";
    const client = new RawClient(gateway.port);
    const { sink, finish } = await open(client);
    for (const byte of bytes(text)) await sink.write(Uint8Array.of(byte));
    sink.close();
    finish();
    expect(readResponse(await client.until((seen) => seen.endsWith("0\r\n\r\n"))).body).toBe(text);
    client.leave();
  });

  test("waits for a client that does not read, and goes on when it does", async () => {
    const client = new RawClient(gateway.port);
    const { sink, finish } = await open(client);
    client.pause();
    const block = new Uint8Array(65_536).fill(120);
    let taken = 0;
    let waiting: boolean | Promise<boolean> = true;
    // What the kernel holds for a connection is some megabytes; far more than that must not be taken.
    while (taken < 1_000 && typeof (waiting = sink.write(block)) === "boolean") taken += 1;
    expect(waiting).toBeInstanceOf(Promise);
    expect(taken * block.length).toBeLessThan(32_000_000);
    client.resume();
    expect(await waiting).toBe(true);
    sink.close();
    finish();
    await client.until((text) => text.endsWith("0\r\n\r\n"));
    client.leave();
  });

  test("tells at once that the client left, while nothing is written", async () => {
    const client = new RawClient(gateway.port);
    const { sink, call, write, finish } = await open(client);
    await write("data: 1\n\n");
    const left = new Promise<void>((abort) => call.signal.addEventListener("abort", () => abort()));
    client.leave();
    await left;
    expect(await write("data: 2\n\n")).toBe(false);
    sink.close();
    expect(await write("data: 3\n\n")).toBe(false);
    finish();
  });

  test("a write that waits for a client ends with false when the client leaves", async () => {
    const client = new RawClient(gateway.port);
    const { sink, finish } = await open(client);
    client.pause();
    const block = new Uint8Array(65_536);
    let waiting: boolean | Promise<boolean> = true;
    for (let taken = 0; taken < 1_000 && typeof waiting === "boolean"; taken++) waiting = sink.write(block);
    client.leave();
    // The kernel may take this one and the next before it knows.
    for (let taken = 0; taken < 1_000 && (await waiting); taken++) waiting = sink.write(block);
    expect(await waiting).toBe(false);
    sink.close();
    finish();
  });

  test("an empty write is no sign of anything", async () => {
    const client = new RawClient(gateway.port);
    const { sink, write, finish } = await open(client);
    expect(await write("")).toBe(true);
    expect(await write("data: 1\n\n")).toBe(true);
    sink.close();
    sink.close();
    finish();
    await client.until((text) => text.endsWith("0\r\n\r\n"));
    client.leave();
  });

  test("hands the client's bytes and headers on as they came", async () => {
    const client = new RawClient(gateway.port);
    await client.write(REQUEST("/v1/messages?beta=true").replace("Host", "anthropic-beta: one,two\r\nHost"));
    const { call, sink, finish } = await stream.passed;
    expect(call.secret).toBe(key);
    expect(call.headers.get("anthropic-beta")).toBe("one,two");
    expect(Buffer.from(call.body).toString()).toBe("{}");
    sink.close();
    finish();
    client.leave();
  });
});

describe("Bun ends a connection on which a request is pipelined behind an open one, and nobody else is hurt", () => {
  test("a stream that is open notices that its client is gone", async () => {
    const client = new RawClient(gateway.port);
    const { sink, call, finish } = await open(client);
    const ended = new Promise<void>((end) => {
      if (call.signal.aborted) end();
      call.signal.addEventListener("abort", () => end());
    });
    await client.write(REQUEST());
    await ended;
    sink.close();
    finish();
    client.leave();
    expect((await gateway.send("GET", "/v1/me", { bearer: key })).status).toBe(200);
    expect(gateway.faults).toEqual([]);
  });

  test("two that are sent at once", async () => {
    const client = new RawClient(gateway.port);
    const called = new Promise<GenerationCall>((resolve) => {
      const streaming = gateway.generate;
      gateway.generate = (call) => {
        resolve(call);
        return streaming(call);
      };
    });
    await client.write(REQUEST() + REQUEST());
    expect((await called).signal.aborted).toBe(true);
    client.leave();
    expect((await gateway.send("GET", "/v1/me", { bearer: key })).status).toBe(200);
    expect(gateway.faults).toEqual([]);
  });
});

test("whole answers follow each other on one connection", async () => {
  gateway.generate = async () => ({
    kind: "whole",
    status: 200,
    headers: { "content-type": "application/json" },
    body: bytes('{"ok":"ż"}'),
  });
  const client = new RawClient(gateway.port);
  await client.write(REQUEST());
  await client.until((text) => text.endsWith('"}'));
  await client.write(REQUEST());
  const text = await client.until((seen) => seen.split("HTTP/1.1 200").length === 3 && seen.endsWith('"}'));
  expect(text).not.toContain("chunked");
  client.leave();
});
