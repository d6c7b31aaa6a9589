import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { ManualClock } from "../fakes/clock.ts";
import { until } from "../fakes/until.ts";
import { RawClient, readResponse, whole } from "./raw-client.ts";
import { TestGateway } from "./test-gateway.ts";

/** Bodies of requests without a prompt. There is room for 500,000 bytes of those above 128 KiB. */
let gateway: TestGateway;
beforeEach(() => {
  gateway = new TestGateway();
  gateway.settings.bodyBytes = 400_000;
});
afterEach(() => gateway.stop());

/** A key's wish in so many bytes. */
const wish = (bytes: number): string => '{"name":"mine"}'.padEnd(bytes);
const head = (...fields: string[]) =>
  ["POST /v1/keys HTTP/1.1", "Host: gateway.test", ...fields, "", ""].join("\r\n");
const framed = (body: string, framing: "declared" | "chunked"): string =>
  framing === "declared"
    ? head(`Content-Length: ${body.length}`) + body
    : `${head("Transfer-Encoding: chunked")}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

async function answered(text: string) {
  const client = new RawClient(gateway.port);
  await client.write(text);
  const { status, body } = readResponse(await client.until(whole));
  client.leave();
  return { status, json: JSON.parse(body) };
}

/** The beginning of a large body, which is waited for. */
async function started(bytes: number): Promise<RawClient> {
  const client = new RawClient(gateway.port);
  await client.write(head(`Content-Length: ${bytes}`) + wish(150_000));
  await until(() => gateway.controlBodies.taken > 0);
  return client;
}

test.each(["declared", "chunked"] as const)(
  "a body may be as large as any other, and no larger: %s",
  async (framing) => {
    for (const bytes of [15, 131_072, 131_073, 400_000]) {
      const { status, json } = await answered(framed(wish(bytes), framing));
      expect([bytes, status, json.name]).toEqual([bytes, 201, "mine"]);
    }
    const { status, json } = await answered(framed(wish(400_001), framing));
    expect([status, json.error.code]).toEqual([413, "payload_too_large"]);
    expect(json.error.message).toContain("400000 bytes");
    expect(gateway.controlBodies.taken).toBe(0);
  },
);

describe("a large body that hardly comes", () => {
  let clock: ManualClock;
  beforeEach(async () => {
    await gateway.stop();
    clock = new ManualClock();
    gateway = new TestGateway({ clock });
    gateway.settings.bodyBytes = 400_000;
  });

  test.each(["declared", "chunked"] as const)("loses its room: %s", async (framing) => {
    const client = new RawClient(gateway.port);
    const piece = wish(150_000);
    await client.write(
      framing === "declared"
        ? head("Content-Length: 400000") + piece
        : `${head("Transfer-Encoding: chunked")}${piece.length.toString(16)}\r\n${piece}\r\n`,
    );
    await until(() => gateway.controlBodies.taken > 0);
    clock.advance(23_999);
    expect(gateway.controlBodies.taken).toBe(400_000);
    clock.advance(1);
    await until(() => gateway.controlBodies.taken === 0);
    expect(await client.until((text) => text.includes("\r\n\r\n"))).toStartWith("HTTP/1.1 400");
    client.leave();
    clock.advance(300);
  });

  test("takes no room once it is given up, whatever else comes of it", async () => {
    const client = new RawClient(gateway.port);
    const chunk = (bytes: number) => `${bytes.toString(16)}\r\n${wish(bytes)}\r\n`;
    await client.write(`${head("Transfer-Encoding: chunked")}${chunk(100_000)}`);
    await until(() => clock.pending > 0);
    clock.advance(24_000);
    await client.until((text) => text.includes("\r\n\r\n"));
    await client.write(chunk(100_000));
    for (let turn = 0; turn < 20; turn++) await answered(framed(wish(15), "declared"));
    expect(gateway.controlBodies.taken).toBe(0);
    client.leave();
    clock.advance(300);
  });
});

test("what a large body says is judged like what a small one says", async () => {
  const { status, json } = await gateway.send("POST", "/v1/keys", { body: { name: "x".repeat(200_000) } });
  expect([status, json.error.code, json.error.param]).toEqual([400, "invalid_request", "name"]);
});

test("when there is no room for another large one, it is refused at once, and small ones are served", async () => {
  const first = await started(400_000);
  for (const framing of ["declared", "chunked"] as const) {
    const { status, json } = await answered(framed(wish(200_000), framing));
    expect([status, json.error.code]).toEqual([429, "rate_limited"]);
    expect((await answered(framed(wish(100_000), framing))).status).toBe(201);
  }
  expect(gateway.bodies.taken).toBe(0);
  await first.write(" ".repeat(250_000));
  expect(readResponse(await first.until(whole)).status).toBe(201);
  expect((await answered(framed(wish(200_000), "chunked"))).status).toBe(201);
});

test("a client that leaves midway gives its room back", async () => {
  const client = await started(400_000);
  client.leave();
  await until(() => gateway.controlBodies.taken === 0);
  expect(gateway.faults).toEqual([]);
});

test("ten thousand values are too many, whatever they are", async () => {
  const { status, json } = await gateway.send("POST", "/v1/keys", {
    body: `{"name":[${"1,".repeat(10_000)}1]}`,
  });
  expect([status, json.error.code]).toEqual([400, "invalid_request"]);
  expect(json.error.message).toContain("more than 10000 JSON values");
});
