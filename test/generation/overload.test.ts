import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { MAX_WAITING } from "../../src/hosts/slots/host-slots.ts";
import { json, silence, sse, status } from "../fakes/behaviours.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { type Behaviour, type FakeHost, hostRow, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import {
  heldNano,
  openTestGateway,
  read,
  requestBody,
  type TestGateway,
  type TestGatewayOptions,
} from "./test-gateway.ts";

/** A host that takes one request at a time, and keeps each until the gate opens. */
const { whole, events } = chatText();
let finish: Gate<void>;
let behaviour: Behaviour;
let host: FakeHost;
let spare: FakeHost;
let gateway: TestGateway | null = null;

beforeEach(async () => {
  finish = gate();
  behaviour = sse(events, { before: (n) => (n === 2 ? finish.passed : null) });
  host = await startFakeHost(() => (wire, request) => behaviour(wire, request));
  spare = await startFakeHost(() => json(whole));
});
afterEach(async () => {
  finish.open();
  await gateway?.close();
  await Promise.all([host.close(), spare.close()]);
});

async function open(options: TestGatewayOptions = {}, withSpare = false): Promise<TestGateway> {
  const rows = [hostRow(host, { id: "small", maxConcurrent: 1 })];
  gateway = await openTestGateway(withSpare ? [...rows, hostRow(spare, { id: "spare" })] : rows, options);
  return gateway;
}

const chat = (more: object = {}) => requestBody("chat.completions", more);
const STREAM = { stream: true };

test("a request waits in the line of a host that has its fill, and is served when its turn comes", async () => {
  const { send, receipt } = await open();
  const first = await send("chat.completions", chat(STREAM));
  const second = send("chat.completions", chat(STREAM));
  finish.open();
  expect(await read(first)).toEndWith("data: [DONE]\n\n");
  const answer = await second;
  expect(await read(answer)).toEndWith("data: [DONE]\n\n");
  expect(host.requests).toHaveLength(2);
  expect(receipt(answer).attempts).toHaveLength(1);
});

test("where another host has room, nobody waits", async () => {
  const { send, receipt } = await open({}, true);
  const first = await send("chat.completions", chat(STREAM));
  const second = await send("chat.completions", chat());
  expect(receipt(second)).toMatchObject({ host: "spare", state: "settled" });
  finish.open();
  await read(first);
});

describe("what cannot be taken in time is shed", () => {
  test("with 503, when to come back, and nothing held; the stream in flight goes on", async () => {
    const gateway = await open({
      settings: {
        attempts: { firstTokenMs: 100, maxHosts: 3, hedgeMs: null, chunkGapMs: 120_000, totalMs: 1_200_000 },
      },
    });
    const first = await gateway.send("chat.completions", chat(STREAM));
    const held = await heldNano(gateway);
    const shed = await gateway.send("chat.completions", chat());
    expect(shed.status).toBe(503);
    expect(await read(shed)).toContain("model_unavailable");
    expect(Number(shed.headers["retry-after"])).toBeWithin(1, 6);
    expect(shed.headers["x-should-retry"]).toBe("true");
    expect(gateway.receipt(shed)).toMatchObject({ state: "failed", cost_usd: 0, attempts: [] });
    expect(await heldNano(gateway)).toBe(held);
    finish.open();
    expect(await read(first)).toEndWith("data: [DONE]\n\n");
    expect(host.requests).toHaveLength(1);
  });

  test("at once and without a hold, when the line is full", async () => {
    const gateway = await open({ creditUsd: 1_000 });
    const first = await gateway.send("chat.completions", chat(STREAM));
    const leaving = new AbortController();
    const line = Array.from({ length: MAX_WAITING }, () =>
      gateway.send("chat.completions", chat(), leaving.signal),
    );
    await until(() => [...gateway.slots.loads()][0]!.waiting >= MAX_WAITING);
    const shed = await gateway.send("chat.completions", chat());
    expect(shed.status).toBe(503);
    expect(gateway.refusals.map(({ errorCode }) => errorCode)).toEqual(["model_unavailable"]);
    leaving.abort();
    await Promise.all(line);
    finish.open();
    expect(await read(first)).toEndWith("data: [DONE]\n\n");
    expect(await heldNano(gateway)).toBe(0 as never);
    expect([...gateway.slots.loads()][0]).toMatchObject({ inFlight: 0, waiting: 0 });
  });
});

describe("the place is given back", () => {
  const inFlight = ({ slots }: TestGateway) => [...slots.loads()].map((line) => line.inFlight);

  test.each<[string, Behaviour]>([
    ["after an answer", json(whole)],
    ["after an error", status(500)],
    ["after a verdict on the request", status(400)],
    ["after silence", silence()],
  ])("%s", async (_name, does) => {
    behaviour = does;
    const gateway = await open({
      settings: {
        attempts: { firstTokenMs: 50, maxHosts: 3, hedgeMs: null, chunkGapMs: 120_000, totalMs: 1_200_000 },
      },
    });
    await read(await gateway.send("chat.completions", chat()));
    expect(inFlight(gateway)).toEqual([0]);
  });

  test("when the client leaves amid a stream, or before it is taken up", async () => {
    const gateway = await open();
    for (const taken of [true, false]) {
      const leaving = new AbortController();
      const answer = await gateway.send("chat.completions", chat(STREAM), leaving.signal);
      const reading = taken ? read(answer) : null;
      expect(inFlight(gateway)).toEqual([1]);
      leaving.abort();
      await reading;
      await until(() => gateway.ledger.openHolds === 0);
      expect(inFlight(gateway)).toEqual([0]);
    }
  });

  test("when the hold cannot be written down", async () => {
    const gateway = await open();
    gateway.disk.mood = "full";
    expect((await gateway.send("chat.completions", chat(STREAM))).status).toBe(500);
    expect(inFlight(gateway)).toEqual([0]);
  });
});

test("a host that complains is given less at once", async () => {
  behaviour = status(429);
  gateway = await openTestGateway([hostRow(host, { id: "busy", maxConcurrent: 100 })]);
  await Promise.all(Array.from({ length: 50 }, () => gateway!.send("chat.completions", chat())));
  expect([...gateway.slots.loads()]).toEqual([{ host: "busy", inFlight: 0, limit: 35, waiting: 0, cut: 1 }]);
});

test("a key that has reached its rate is refused before its body is looked at", async () => {
  behaviour = json(whole);
  gateway = await openTestGateway([hostRow(host)], { key: { rpmLimit: 1 } });
  await gateway.send("chat.completions", chat());
  const answer = await gateway.sendBytes("chat.completions", Buffer.from("no JSON at all"));
  expect([answer.status, answer.headers["x-should-retry"]]).toEqual([429, undefined as never]);
  expect(Number(answer.headers["retry-after"])).toBeWithin(1, 62);
  expect(await read(answer)).toContain("rpm_limit");
});
