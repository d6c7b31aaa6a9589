import { afterAll, expect, test } from "bun:test";
import { RawClient } from "./raw-client.ts";
import { TestGateway } from "./test-gateway.ts";

const gateway = new TestGateway();
const MANY = 1_000;
afterAll(() => gateway.stop());

/** All requests of one packet would be answered in one turn of the event loop, and everybody else would wait for that. */
test.each([
  "GET /healthz",
  "GET /v1/models",
  "GET /v1/me",
  "GET /status",
  "GET /nowhere",
  "OPTIONS /v1/models",
  "GET /v1/responses",
  "POST /v1/responses HTTP/1.1\r\nHost: another.test\r\nX-Rest:",
  "POST /v1/chat/completions",
  "POST /v1/messages HTTP/1.1\r\nAuthorization: Bearer wrong\r\nX-Rest:",
])("a connection that sends more requests before it has its first answer is closed: %s", async (line) => {
  const client = new RawClient(gateway.port);
  void client.write(`${line} HTTP/1.1\r\nHost: gateway.test\r\n\r\n`.repeat(MANY));
  const answersIn = (text: string) => text.split("HTTP/1.1 ").length - 1;
  await client.until((text) => answersIn(text) === MANY).catch(() => {});
  expect(answersIn(client.text)).toBeLessThan(2);
  client.leave();
});
