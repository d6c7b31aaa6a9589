import { afterAll, expect, test } from "bun:test";
import type { GenerationAnswer, GenerationCall, Sink } from "../../src/generation/answer.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { RawClient } from "./raw-client.ts";
import { TestGateway } from "./test-gateway.ts";

/**
 * Who is waited for. While the gateway works, a client may be silent for as long as that takes; when it is
 * the client's turn, to take bytes or to send its next request, it has a limit, here the shortest that Bun's
 * clock knows.
 */
const gateway = new TestGateway({ untakenSeconds: 1 });
const key = (await gateway.setUp()).key;
afterAll(() => gateway.stop());

interface Opened {
  readonly sink: Sink;
  readonly call: GenerationCall;
  readonly finish: () => void;
}

const streamInto =
  (opened: Gate<Opened>) =>
  async (call: GenerationCall): Promise<GenerationAnswer> => ({
    kind: "stream",
    status: 200,
    headers: { "content-type": "text/event-stream" },
    run(sink) {
      const done = gate();
      opened.open({ sink, call, finish: () => done.open() });
      return done.passed;
    },
  });

async function send(answer: (call: GenerationCall) => Promise<GenerationAnswer>): Promise<RawClient> {
  gateway.generate = answer;
  const client = new RawClient(gateway.port);
  await client.write(
    `POST /v1/responses HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer ${key}\r\nContent-Length: 2\r\n\r\n{}`,
  );
  return client;
}

async function requestStream() {
  const opened = gate<Opened>();
  const client = await send(streamInto(opened));
  return { client, ...(await opened.passed) };
}

const EVENT = new TextEncoder().encode("data: 1\n\n");

test("a silent host costs no client its stream; a client that takes or sends nothing more is let go", async () => {
  const silent = await requestStream();
  expect(await silent.sink.write(EVENT)).toBe(true);
  await silent.client.until((text) => text.includes("data: 1"));

  const stalled = await requestStream();
  stalled.client.pause();
  const left = new Promise<void>((abort) => stalled.call.signal.addEventListener("abort", () => abort()));
  const block = new Uint8Array(65_536);
  const untaken = (async () => {
    // Far more than the kernel holds for a connection.
    for (let blocks = 0; blocks < 1_000; blocks++) if (!(await stalled.sink.write(block))) return "gone";
    return "taken";
  })();

  const streamed = await requestStream();
  await streamed.sink.write(EVENT);
  streamed.sink.close();
  streamed.finish();
  const answered = await send(async () => ({
    kind: "whole",
    status: 200,
    headers: { "content-type": "application/json" },
    body: EVENT,
  }));
  await answered.until((text) => text.endsWith("data: 1\n\n"));
  const failed = await send(() => Promise.reject(new Error("broken")));
  await failed.until((text) => text.includes("internal_error"));

  expect(await untaken).toBe("gone");
  await left;
  expect(await streamed.client.end()).toEndWith("0\r\n\r\n");
  expect(await answered.end()).toContain("data: 1");
  await failed.end();

  expect(silent.call.signal.aborted).toBe(false);
  expect(await silent.sink.write(EVENT)).toBe(true);
  silent.sink.close();
  silent.finish();
  await silent.client.until((text) => text.endsWith("0\r\n\r\n"));
  stalled.finish();
  stalled.client.leave();
});
