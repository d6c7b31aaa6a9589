import { afterAll, describe, expect, test } from "bun:test";
import { ADMIN_TOKEN, TestGateway } from "./test-gateway.ts";

/** How a credential is shown. What each may do is told in test/access. */
const gateway = new TestGateway();
afterAll(() => gateway.stop());

describe("x-api-key", () => {
  const reads: [string, string, boolean][] = [
    ["POST", "/v1/messages", true],
    ["POST", "/v1/messages/count_tokens", true],
    ["GET", "/v1/models", true],
    ["POST", "/v1/v1/messages", true],
    ["POST", "/v1/chat/completions", false],
    ["POST", "/v1/responses", false],
    ["POST", "/v1/keys", false],
    ["GET", "/v1/me", false],
    ["GET", "/v1/catalog", false],
  ];
  test.each(reads)("on %s %s is read as the bearer token: %p", async (method, path, read) => {
    const { key } = await gateway.setUp();
    const { status, json } = await gateway.send(method, path, {
      headers: { "x-api-key": key },
      ...(method === "POST" ? { body: "{}" } : {}),
    });
    if (read) expect(status).toBe(200);
    else {
      expect([status, json.error.code]).toEqual([401, "missing_api_key"]);
      expect(json.error.message).toContain("Authorization: Bearer");
      expect(json.error.message).toContain("x-api-key");
    }
  });
});

test("the scheme's case does not matter; another scheme is no bearer token", async () => {
  const { key } = await gateway.setUp();
  const as = async (authorization: string) => {
    const { status, json } = await gateway.send("GET", "/v1/me", { headers: { authorization } });
    return status === 200 ? "200" : json.error.code;
  };
  expect(await as(`bearer ${key}`)).toBe("200");
  expect(await as(`BEARER  ${key}`)).toBe("200");
  expect(await as(`Basic ${key}`)).toBe("missing_api_key");
  expect(await as("Bearer")).toBe("missing_api_key");
  expect(await as(`Bearer ${key}x`)).toBe("invalid_api_key");
  expect(await as(`Bearer ${key}, Bearer ${key}`)).toBe("invalid_api_key");
});

test("the metrics are open to this machine, and to the admin token behind a proxy", async () => {
  expect((await gateway.send("GET", "/metrics")).text).toBe("gateway_up 1\n");
  const headers = { "x-forwarded-for": "192.0.2.1" };
  const stranger = await gateway.send("GET", "/metrics", { headers });
  expect(stranger.json.error).toMatchObject({
    code: "missing_api_key",
    message: expect.stringContaining("Bearer <ADMIN_TOKEN>"),
  });
  expect(
    (await gateway.send("GET", "/metrics", { headers, bearer: (await gateway.setUp()).key })).status,
  ).toBe(401);
  expect((await gateway.send("GET", "/metrics", { headers, bearer: ADMIN_TOKEN })).status).toBe(200);
});

const METRICS: [name: string, headers: Record<string, string>, status: number][] = [
  ["this machine by its name", { host: "localhost:8080" }, 200],
  ["this machine by its IPv6 address", { host: "[::1]:8080" }, 200],
  ["a page that gave its own name our address", { host: "rebound.example" }, 401],
  ["the same with our port", { host: "rebound.example:8080" }, 401],
  ["a name that only begins like this machine's", { host: "localhost.example" }, 401],
  ["an address that only begins like this machine's", { host: "127.0.0.1.example" }, 401],
  ["a proxy that names the client", { "x-forwarded-for": "192.0.2.1" }, 401],
  ["a proxy that names only the protocol", { "x-forwarded-proto": "https" }, 401],
  ["a proxy that names only its own host", { "x-forwarded-host": "gateway.example" }, 401],
  ["a proxy that keeps to the standard", { forwarded: "for=192.0.2.1" }, 401],
  ["a proxy that names itself", { via: "1.1 proxy" }, 401],
  ["nginx as many set it up", { "x-real-ip": "192.0.2.1" }, 401],
  ["a tunnel of Cloudflare's", { "cf-connecting-ip": "192.0.2.1" }, 401],
  ["another header of Cloudflare's", { "cf-ray": "1" }, 401],
  ["Akamai", { "true-client-ip": "192.0.2.1" }, 401],
];
test.each(METRICS)("without the admin token, the metrics for %s", async (_, headers, status) => {
  expect((await gateway.send("GET", "/metrics", { headers })).status).toBe(status);
});
