import { afterAll, expect, test } from "bun:test";
import { RawClient, readResponse, whole } from "./raw-client.ts";
import { TestGateway } from "./test-gateway.ts";

/** What a request for a WebSocket is answered with. */
const gateway = new TestGateway();
const made = await gateway.setUp();
const key = made.key;
const recovery = made.recovery_secret;
gateway.fund(made.balance_id);
afterAll(() => gateway.stop());

type Headers = Readonly<Record<string, string | undefined>>;

const UPGRADE: Headers = {
  Connection: "Upgrade",
  Upgrade: "websocket",
  "Sec-WebSocket-Version": "13",
  "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
};

async function send(headers: Headers, path = "/v1/responses") {
  const client = new RawClient(gateway.port);
  const lines = Object.entries({ Host: "gateway.test", ...UPGRADE, ...headers }).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${value}\r\n`],
  );
  await client.write(`GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
  const text = await client.until((seen) => seen.startsWith("HTTP/1.1 101 ") || whole(seen));
  client.leave();
  return readResponse(text);
}

const bearer = (): Headers => ({ Authorization: `Bearer ${key}` });

test.each<[string, () => Headers]>([
  ["with a key", bearer],
  ["of a page elsewhere, with a key", () => ({ ...bearer(), Origin: "https://elsewhere.example" })],
  [
    "with the key among the subprotocols, as pages send it",
    () => ({ "Sec-WebSocket-Protocol": `realtime, openai-insecure-api-key.${key}` }),
  ],
  [
    "with extensions and a beta, as Codex does",
    () => ({
      ...bearer(),
      "Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits",
      "OpenAI-Beta": "responses_websockets=2026-02-06",
    }),
  ],
])("%s is upgraded, without compression", async (_, headers) => {
  for (const path of ["/v1/responses", "/v1/v1/responses"]) {
    const answer = await send(headers(), path);
    expect([answer.status, answer.headers["sec-websocket-accept"]]).toEqual([
      101,
      "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
    ]);
    expect(answer.headers["sec-websocket-extensions"]).toBeUndefined();
  }
});

test.each<[string, () => Headers, number, string]>([
  ["without a key", () => ({}), 401, "missing_api_key"],
  [
    "of a page elsewhere, without a key",
    () => ({ Origin: "https://elsewhere.example" }),
    401,
    "missing_api_key",
  ],
  [
    "with the cookie of a session",
    () => ({ Cookie: "__Host-session=ses_x", Origin: gateway.url }),
    401,
    "missing_api_key",
  ],
  [
    "with an unknown key",
    () => ({ Authorization: `Bearer or-live-${"a".repeat(32)}` }),
    401,
    "invalid_api_key",
  ],
  ["with a recovery secret", () => ({ Authorization: `Bearer ${recovery}` }), 401, "invalid_api_key"],
  [
    "without asking for an upgrade",
    () => ({ ...bearer(), Upgrade: undefined, Connection: undefined }),
    426,
    "unsupported_endpoint",
  ],
  ["asking for another protocol", () => ({ ...bearer(), Upgrade: "h2c" }), 426, "unsupported_endpoint"],
  [
    "without a key of the handshake",
    () => ({ ...bearer(), "Sec-WebSocket-Key": undefined }),
    426,
    "unsupported_endpoint",
  ],
  ["with trailers", () => ({ ...bearer(), Trailer: "x" }), 400, "invalid_request"],
])("%s is answered over HTTP", async (_, headers, status, code) => {
  const { status: answered, headers: received, body } = await send(headers());
  const { error } = JSON.parse(body);
  expect([answered, error.code]).toEqual([status, code]);
  expect(received["x-gateway-receipt"]).toStartWith("rcpt_");
  if (status === 426) expect(received.upgrade).toBe("websocket");
});

test("while the gateway stops, requests are served and connections are not opened", async () => {
  gateway.stopping = true;
  const { status, headers } = await send(bearer());
  gateway.stopping = false;
  expect([status, headers.upgrade]).toEqual([426, "HTTP/1.1"]);
});
