import { afterAll, describe, expect, test } from "bun:test";
import { TestGateway } from "./test-gateway.ts";

let key = "";
const gateway = new TestGateway();
key = (await gateway.setUp()).key;
afterAll(() => gateway.stop());

const OPEN: [method: string, path: string][] = [
  ["POST", "/v1/chat/completions"],
  ["POST", "/v1/v1/chat/completions"],
  ["POST", "/v1/responses"],
  ["POST", "/v1/messages"],
  ["POST", "/v1/messages/count_tokens"],
  ["GET", "/v1/models"],
  ["GET", "/v1/models/sim/echo"],
  ["GET", "/v1/catalog"],
  ["GET", "/v1/me"],
  ["GET", "/v1/key"],
  ["GET", "/v1/generation"],
  ["GET", "/v1/receipts"],
  ["GET", "/v1/receipts/rcpt_1"],
  ["POST", "/v1/credits"],
];
const CLOSED: [method: string, path: string][] = [
  ["POST", "/v1/keys"],
  ["GET", "/v1/keys"],
  ["POST", "/v1/me/claim"],
  ["GET", "/v1/budgets"],
  ["GET", "/key/info"],
  ["GET", "/v1/usage"],
  ["POST", "/v1/auth/email"],
  ["POST", "/v1/auth/logout"],
  ["GET", "/admin/hosts"],
  ["GET", "/admin/config"],
  ["GET", "/metrics"],
  ["GET", "/dashboard"],
];
const ELSEWHERE = { origin: "https://app.example" };

const preflight = (path: string, method: string) =>
  fetch(gateway.url + path, {
    method: "OPTIONS",
    headers: {
      ...ELSEWHERE,
      "access-control-request-method": method,
      "access-control-request-headers": "authorization,content-type,x-stainless-lang",
    },
  });

describe("a page of another origin", () => {
  for (const [method, path] of OPEN) {
    test(`may ${method} ${path}, also where it is refused, and reads the gateway's headers`, async () => {
      const allowed = await preflight(path, method);
      expect([allowed.status, await allowed.text()]).toEqual([204, ""]);
      expect(allowed.headers.get("access-control-allow-origin")).toBe("*");
      expect(allowed.headers.get("access-control-allow-methods")).toContain(method);
      // `*` alone would not cover it.
      expect(allowed.headers.get("access-control-allow-headers")).toBe("authorization, *");
      expect(allowed.headers.get("x-gateway-receipt")).toStartWith("rcpt_");
      for (const bearer of [key, "or-live-unknown"]) {
        const body = method === "POST" ? { body: {} } : {};
        const { headers } = await gateway.send(method, path, { bearer, headers: ELSEWHERE, ...body });
        expect(headers.get("access-control-allow-origin")).toBe("*");
        expect(headers.get("access-control-expose-headers")).toContain("x-gateway-receipt");
        expect(headers.has("access-control-allow-credentials")).toBe(false);
      }
    });
  }

  for (const [method, path] of CLOSED) {
    test(`may not ${method} ${path}`, async () => {
      const answers = [
        await preflight(path, method),
        await gateway.send(method, path, { headers: ELSEWHERE }),
      ];
      for (const { headers } of answers) expect(headers.has("access-control-allow-origin")).toBe(false);
      expect(answers[0]!.status).toBe(400);
    });
  }

  test("may pay for credit, and not read the list of it", async () => {
    const allowed = await preflight("/v1/credits", "GET");
    expect(allowed.headers.get("access-control-allow-methods")).toBe("POST");
    const { headers } = await gateway.send("GET", "/v1/credits", { bearer: key, headers: ELSEWHERE });
    expect(headers.has("access-control-allow-origin")).toBe(false);
  });

  test("gets an error when its body is too large", async () => {
    const body = "x".repeat(gateway.settings.bodyBytes + 1);
    const { status, headers } = await gateway.send("POST", "/v1/responses", {
      bearer: key,
      headers: ELSEWHERE,
      body,
    });
    expect(status).toBe(413);
    expect(headers.get("access-control-allow-origin")).toBe("*");
  });
});

test("a client that is no page gets no more headers than before", async () => {
  const { headers } = await gateway.send("GET", "/v1/models", { bearer: key });
  expect([...headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
});

describe("a page elsewhere that sends for its visitor, without any credential", () => {
  const simple: [path: string, body: unknown][] = [
    ["/v1/keys", {}],
    ["/v1/v1/keys", {}],
    ["/v1/auth/email", { email: "victim@example.com" }],
    ["/v1/auth/email/verify", { token: "or-link-x" }],
    ["/v1/auth/wallet", { address: "0x52908400098527886E0F7030069857D2E4169EE7", chain_id: 1 }],
    ["/v1/auth/wallet/verify", { message: "m", signature: "0x00" }],
  ];
  const origins = ["https://app.example", "null", "http://rebound.example", "file://", "nonsense"];
  for (const [path, body] of simple) {
    test(`is refused POST ${path}`, async () => {
      for (const origin of origins) {
        const host = origin.startsWith("http://rebound") ? { host: "rebound.example" } : {};
        const headers = { origin, "content-type": "text/plain", ...host };
        const { status, json } = await gateway.send("POST", path, { body: JSON.stringify(body), headers });
        expect([status, json.error.param]).toEqual([400, "Origin"]);
      }
    });
  }

  test("nothing is made and nobody is mailed", async () => {
    const before = gateway.db.query("SELECT count(*) AS keys FROM keys").get();
    const headers = { origin: "https://app.example", "content-type": "text/plain" };
    await gateway.send("POST", "/v1/keys", { headers });
    await gateway.send("POST", "/v1/auth/email", { headers, body: '{"email":"victim@example.com"}' });
    expect(gateway.db.query("SELECT count(*) AS keys FROM keys").get()).toEqual(before);
    expect(gateway.mails).toEqual([]);
  });

  const own: [name: string, headers: Record<string, string>][] = [
    ["no page at all", {}],
    ["the gateway's own page", { origin: "http://gateway.test" }],
    ["a page of a machine's address", { origin: "http://192.0.2.7:8080", host: "192.0.2.7:8080" }],
    ["a page of an IPv6 address", { origin: "http://[2001:db8::7]:8080", host: "[2001:db8::7]:8080" }],
  ];
  test.each(own)("%s is served", async (_, headers) => {
    expect((await gateway.send("POST", "/v1/keys", { headers })).status).toBe(201);
  });

  test("with a key in `Authorization` or `x-api-key`, a page elsewhere is served as before", async () => {
    const { id, key: own } = await gateway.setUp();
    const headers = { origin: "https://app.example" };
    const changed = await gateway.send("PATCH", `/v1/keys/${id}`, {
      bearer: own,
      body: { rpm_limit: 5 },
      headers,
    });
    expect(changed.status).toBe(200);
    const chat = await gateway.send("POST", "/v1/chat/completions", { bearer: own, body: {}, headers });
    expect(chat.status).toBe(200);
    const messages = { headers: { ...headers, "x-api-key": own }, body: {} };
    expect((await gateway.send("POST", "/v1/messages", messages)).status).toBe(200);
  });
});
