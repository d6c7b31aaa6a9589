import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { UNPAID_BYTES } from "../../src/ledger/limits/unpaid-allowance.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { ManualClock } from "../fakes/clock.ts";
import { gate } from "../fakes/gate.ts";
import { until } from "../fakes/until.ts";
import { RawClient, readResponse, whole } from "./raw-client.ts";
import { TestGateway } from "./test-gateway.ts";

/** A gateway with room for 150,000 bytes of large bodies, and a limit of 100,000 for each. */
let gateway: TestGateway;
let key: string;
beforeEach(async () => {
  gateway = new TestGateway();
  key = await funded();
});
afterEach(() => gateway.stop());

async function funded(usd = 50): Promise<string> {
  const made = await gateway.setUp();
  gateway.fund(made.balance_id, usd);
  return made.key;
}

const LARGE = 90_000;
const head = (bytes: number, bearer = key) =>
  [
    "POST /v1/chat/completions HTTP/1.1",
    "Host: gateway.test",
    `Authorization: Bearer ${bearer}`,
    `Content-Length: ${bytes}`,
    "",
    "",
  ].join("\r\n");

/** Two large bodies do not fit together. The first one's answer is held back. */
async function occupied(): Promise<{ client: RawClient; finish: () => void }> {
  const finish = gate();
  const { generate } = gateway;
  gateway.generate = async (call) => {
    await finish.passed;
    return generate(call);
  };
  const client = new RawClient(gateway.port);
  await client.write(head(LARGE) + "x".repeat(LARGE));
  await until(() => gateway.calls.length > 0);
  gateway.generate = generate;
  return { client, finish: () => finish.open() };
}

describe("large bodies", () => {
  test("wait for room in the client's socket, and are read when there is some", async () => {
    const first = await occupied();
    const second = new RawClient(gateway.port);
    await second.write(head(LARGE) + "x".repeat(LARGE));
    await until(() => gateway.bodies.waiting > 0);
    expect(gateway.calls).toHaveLength(1);
    first.finish();
    expect(readResponse(await second.until(whole)).status).toBe(200);
    expect(readResponse(await first.client.until(whole)).status).toBe(200);
    expect([gateway.bodies.taken, gateway.bodies.waiting]).toEqual([0, 0]);
  });

  test("of a client that leaves meanwhile are forgotten", async () => {
    const first = await occupied();
    const second = new RawClient(gateway.port);
    await second.write(head(LARGE));
    await until(() => gateway.bodies.waiting > 0);
    second.leave();
    await until(() => gateway.bodies.waiting === 0);
    expect(gateway.bodies.taken).toBe(LARGE);
    first.finish();
  });

  test("give their room back when their client leaves midway", async () => {
    const client = new RawClient(gateway.port);
    await client.write(`${head(LARGE)}only the beginning`);
    await until(() => gateway.bodies.taken > 0);
    client.leave();
    await until(() => gateway.bodies.taken === 0);
    expect(gateway.calls).toHaveLength(0);
  });

  test.each([
    ["of a key that has reached its rate", () => key, 429, "rate_limited"],
    ["of a stranger", () => "or-live-nobody", 401, "invalid_api_key"],
  ])("%s are refused unread", async (_name, bearer, status, code) => {
    gateway.overRate = true;
    const client = new RawClient(gateway.port);
    await client.write(head(LARGE, bearer()));
    const answer = readResponse(await client.until(whole));
    expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([status, code]);
    expect([gateway.calls.length, gateway.bodies.taken]).toEqual([0, 0]);
  });

  describe("that hardly come", () => {
    let clock: ManualClock;
    beforeEach(async () => {
      await gateway.stop();
      clock = new ManualClock();
      gateway = new TestGateway({ clock });
      key = await funded();
    });
    const started = async (bytes = LARGE): Promise<RawClient> => {
      const client = new RawClient(gateway.port);
      await client.write(`${head(bytes)}only the beginning`);
      await until(() => gateway.bodies.taken > 0);
      return client;
    };

    const givenUp = async (client: RawClient): Promise<void> => {
      await client.until((text) => text.includes("100 kB per second"));
      // The answer's end waits until the client has surely seen it.
      clock.advance(300);
      const { status, body } = readResponse(await client.until(whole));
      expect([status, JSON.parse(body).error.code]).toEqual([400, "invalid_request"]);
    };

    test("make room for those that wait for it", async () => {
      const slow = await started();
      const other = new RawClient(gateway.port);
      await other.write(head(LARGE) + "x".repeat(LARGE));
      await until(() => gateway.bodies.waiting > 0);
      clock.advance(5_000);
      await givenUp(slow);
      expect(readResponse(await other.until(whole)).status).toBe(200);
    });

    test("may take their time while nobody waits, but not for ever", async () => {
      const slow = await started();
      clock.advance(19_000);
      expect(gateway.bodies.taken).toBe(LARGE);
      clock.advance(2_000);
      await givenUp(slow);
      await until(() => gateway.bodies.taken === 0);
    });

    test("are given up by their size where there is plenty of room", async () => {
      const slow = await started(70_000);
      clock.advance(20_699);
      expect(gateway.bodies.taken).toBe(70_000);
      clock.advance(1);
      await givenUp(slow);
    });

    test("and those that come fast enough keep their room", async () => {
      const steady = await started();
      const other = new RawClient(gateway.port);
      await other.write(head(LARGE) + "x".repeat(LARGE));
      await until(() => gateway.bodies.waiting > 0);
      clock.advance(3_000);
      await steady.write("x".repeat(LARGE - "only the beginning".length));
      expect(readResponse(await steady.until(whole)).status).toBe(200);
      expect(readResponse(await other.until(whole)).status).toBe(200);
    });
  });

  test("keep no small ones waiting", async () => {
    const first = await occupied();
    const answer = await gateway.send("POST", "/v1/chat/completions", { bearer: key, body: { small: true } });
    expect(answer.status).toBe(200);
    first.finish();
  });
});

describe("of senders without credit, large bodies", () => {
  const slow = async (bearer: string): Promise<RawClient> => {
    const client = new RawClient(gateway.port);
    await client.write(`${head(LARGE, bearer)}only the beginning`);
    return client;
  };
  const whole200 = async (bearer: string, bytes = LARGE) => {
    const client = new RawClient(gateway.port);
    await client.write(head(bytes, bearer) + "x".repeat(bytes));
    expect(readResponse(await client.until(whole)).status).toBe(200);
  };
  /** Room for two large bodies, and a clock that only tests move. */
  let clock: ManualClock;
  beforeEach(async () => {
    await gateway.stop();
    clock = new ManualClock();
    gateway = new TestGateway({ clock, bodyMemory: 2 * LARGE });
    key = await funded();
  });

  test("leave room to paying senders, however many come slowly from however many keys", async () => {
    const free = await Promise.all(Array.from({ length: 60 }, async () => (await gateway.setUp()).key));
    const senders = await Promise.all(free.flatMap((one) => [slow(one), slow(one), slow(one), slow(one)]));
    await until(() => gateway.bodies.waiting + refusedOf(senders) >= 239);
    for (let n = 0; n < 8; n++) await whole200(key);
    expect(gateway.bodies.taken).toBe(LARGE);
    for (const sender of senders) sender.leave();
    await until(() => gateway.bodies.taken + gateway.bodies.waiting === 0);
  });

  test("are read when there is room", async () => whole200((await gateway.setUp()).key));

  test.each([
    ["have no free requests left", 20, 503, "model_unavailable"],
    ["have some", 19, 200, undefined],
  ])("are refused unread while room is scarce where they %s", async (_, used, status, code) => {
    const first = await slow((await gateway.setUp()).key);
    await until(() => gateway.bodies.taken > 0);
    gateway.freeUsed = used;
    const second = new RawClient(gateway.port);
    await second.write(head(LARGE, (await gateway.setUp()).key) + "x".repeat(LARGE));
    if (status === 200) await until(() => gateway.bodies.waiting > 0);
    if (status === 200) first.leave();
    else await second.until((text) => text.includes("error"));
    clock.advance(300);
    const answer = readResponse(await second.until(whole));
    expect([answer.status, JSON.parse(answer.body).error?.code]).toEqual([status, code]);
    first.leave();
  });

  test("take turns as a network", async () => {
    const first = await slow((await gateway.setUp()).key);
    await until(() => gateway.bodies.taken > 0);
    const order: string[] = [];
    const sent: Promise<unknown>[] = [];
    for (const [network, name] of [
      ["192.0.2.1", "a"],
      ["192.0.2.2", "the same /24"],
      ["2001:db8:1:2::3", "b"],
    ] as const) {
      const { key: bearer } = await gateway.setUp();
      const headers = { "x-forwarded-for": network };
      const { waiting } = gateway.bodies;
      const answer = gateway.send("POST", "/v1/chat/completions", {
        bearer,
        headers,
        body: "x".repeat(LARGE),
      });
      sent.push(answer.then(({ status }) => order.push(`${name} ${status}`)));
      await until(() => gateway.bodies.waiting !== waiting);
    }
    first.leave();
    await Promise.all(sent);
    expect(order).toEqual(["a 200", "b 200", "the same /24 200"]);
  });

  test("are 429 when the network has sent as much as is read for nothing in a minute", async () => {
    for (const name of ["bal_a", "bal_b"] as BalanceId[])
      gateway.deps.bodies.unpaid.take({ balance: name, network: "127.0.0.0/24" }, UNPAID_BYTES.aNetwork / 2);
    const refused = new RawClient(gateway.port);
    await refused.write(head(LARGE, (await gateway.setUp()).key) + "x".repeat(LARGE));
    await refused.until((text) => text.includes("error"));
    clock.advance(300);
    const { status, body } = readResponse(await refused.until(whole));
    expect([status, JSON.parse(body).error.code]).toEqual([429, "rate_limited"]);
    await whole200(key);
    clock.advance(61_000);
    await whole200((await gateway.setUp()).key);
  });
});

const refusedOf = (clients: readonly RawClient[]): number =>
  clients.filter((client) => client.text.includes("HTTP/1.1 503")).length;
