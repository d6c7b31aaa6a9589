import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Made, type OpenGateway, open, type SendOptions } from "../gateway/open.ts";
import { ADMIN, simpleConfig } from "../process/gateway.ts";
import { describeOnOwnPostgres } from "./fixture.ts";

/**
 * A request for something that only PostgreSQL knows, while that is away, is refused with a time to retry, and nobody is
 * alarmed.
 */
describeOnOwnPostgres("while PostgreSQL is away", (cluster) => {
  let gateway: OpenGateway;
  let key: Made;
  /** Nobody has used it yet, so the gateway does not remember it. */
  let unseen: Made;
  beforeAll(async () => {
    gateway = await open(simpleConfig([1], `store: ${cluster.url()}\n`));
    [key, unseen] = [await gateway.key(1), await gateway.key(1)];
    expect((await gateway.send("GET", "/v1/me", { bearer: key.key })).status).toBe(200);
    await cluster.end("immediate");
  }, 600_000);
  afterAll(async () => {
    await gateway.close();
  });

  const chat = { model: "test/model", max_tokens: 10, messages: [{ role: "user", content: "Hello" }] };
  const requests: [what: string, method: string, path: string, options: () => SendOptions][] = [
    ["a request", "POST", "/v1/chat/completions", () => ({ bearer: unseen.key, json: chat })],
    [
      "one in Anthropic's language",
      "POST",
      "/v1/messages",
      () => ({ bearer: unseen.key, json: { ...chat, stream: true } }),
    ],
    ["the catalog", "GET", "/v1/catalog", () => ({ bearer: unseen.key })],
    ["a key's own state", "GET", "/v1/me", () => ({ bearer: unseen.key })],
    ["a new key", "POST", "/v1/keys", () => ({})],
    ["an owner's keys", "GET", "/v1/keys", () => ({ bearer: key.recovery_secret })],
    ["a revocation", "DELETE", `/v1/keys/key_1`, () => ({ bearer: key.recovery_secret })],
    ["receipts", "GET", "/v1/receipts", () => ({ bearer: key.recovery_secret })],
    ["charts, for a key that is remembered", "GET", "/v1/usage", () => ({ bearer: key.key })],
    ["what everybody used", "GET", "/admin/usage", () => ({ bearer: ADMIN })],
    ["the nodes", "GET", "/admin/nodes", () => ({ bearer: ADMIN })],
    ["the audit", "GET", "/admin/ledger/audit", () => ({ bearer: ADMIN })],
    [
      "credit",
      "POST",
      "/admin/credits",
      () => ({ bearer: ADMIN, json: { balance_id: key.balance_id, amount_usd: 1, idempotency_key: "one" } }),
    ],
    [
      "credit taken back",
      "POST",
      "/admin/debits",
      () => ({
        bearer: ADMIN,
        json: { balance_id: key.balance_id, amount_usd: "all", idempotency_key: "two" },
      }),
    ],
  ];
  for (const [what, method, path, options] of requests) {
    test(`${what} is a retryable error that says when to come back`, async () => {
      const { status, headers, json } = await gateway.send(method, path, options());
      expect(status).toBe(500);
      expect(json.error.code).toBe("internal_error");
      expect(json.error.message).toContain("Retry in 5 s");
      expect(headers.get("retry-after")).toBe("5");
      expect(gateway.logged.filter((line) => line.includes('"fault"'))).toEqual([]);
    });
  }
});
