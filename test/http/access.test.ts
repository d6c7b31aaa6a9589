import { afterAll, describe, expect, test } from "bun:test";
import { listenMetrics } from "../../src/http/metrics-listener.ts";
import { ADMIN_TOKEN, TestGateway } from "./test-gateway.ts";

/** How a credential is shown. test/access shows what each may do. */
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

test("the metrics are the operator's, also from this machine", async () => {
  const shown = async (bearer?: string) =>
    (await gateway.send("GET", "/metrics", bearer === undefined ? {} : { bearer })).status;
  expect([await shown(), await shown((await gateway.setUp()).key)]).toEqual([401, 401]);
  expect(await shown(ADMIN_TOKEN)).toBe(200);
});

describe("the metrics on an address of their own", () => {
  const metrics = listenMetrics(gateway.deps, { hostname: "127.0.0.1", port: 0, shared: false });
  afterAll(() => metrics.stop(true));
  const cases: [name: string, path: string, headers: Record<string, string>, status: number][] = [
    ["need no token", "/metrics", {}, 200],
    ["for this machine by its name", "/metrics", { host: "localhost:9090" }, 200],
    ["for this machine by its IPv6 address", "/metrics", { host: "[::1]:9090" }, 200],
    ["not for a page that gave its own name the address", "/metrics", { host: "rebound.example" }, 403],
    ["not for a name that only begins like this machine's", "/metrics", { host: "localhost.example" }, 403],
    ["and nothing else", "/admin/hosts", {}, 404],
    ["and nothing else under their name", "/x/metrics/hosts", {}, 404],
  ];
  test.each(cases)("%s", async (_, path, headers, status) => {
    const answer = await fetch(`http://127.0.0.1:${metrics.port}${path}`, { headers });
    expect(answer.status).toBe(status);
    if (status === 200) expect(await answer.text()).toBe("gateway_up 1\n");
  });
});
