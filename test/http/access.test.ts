import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ADMIN_TOKEN, storedReceipt, TestHouse } from "./house.ts";

/**
 * Every endpoint for every identity, on one small world: `mine` owns the key and the receipt that paths name, `theirs` is
 * another balance. Cells are the status and, for errors, the code.
 */
let house: TestHouse;
let bearers: Record<Who, string | undefined>;
let paths: Record<string, string>;

type Who = "none" | "key" | "otherKey" | "recovery" | "otherRecovery" | "admin";
const WHO: Who[] = ["none", "key", "otherKey", "recovery", "otherRecovery", "admin"];

const MISSING = "401 missing_api_key";
const INVALID = "401 invalid_api_key";
const BAD = "400 invalid_request";

/** In the order of WHO. */
const MATRIX: [string, string, unknown, string[]][] = [
  ["POST", "/v1/keys", undefined, ["201", BAD, BAD, "201", "201", INVALID]],
  ["GET", "/v1/keys", undefined, [MISSING, "200", "200", "200", "200", INVALID]],
  ["GET", "/v1/keys/{key}", undefined, [MISSING, "200", BAD, "200", BAD, INVALID]],
  ["PATCH", "/v1/keys/{key}", { rpm_limit: 50 }, [MISSING, "200", BAD, "200", BAD, INVALID]],
  ["POST", "/v1/keys/{key}/rotate", undefined, [MISSING, "200", BAD, BAD, BAD, INVALID]],
  ["GET", "/v1/me", undefined, [MISSING, "200", "200", "200", "200", INVALID]],
  ["GET", "/v1/budgets", undefined, [MISSING, BAD, BAD, "200", "200", INVALID]],
  [
    "POST",
    "/v1/budgets",
    { name: "b", cap_usd: 1, window: "day" },
    [MISSING, BAD, BAD, "201", "201", INVALID],
  ],
  ["GET", "/v1/budgets/team", undefined, [MISSING, BAD, BAD, "200", BAD, INVALID]],
  ["PATCH", "/v1/budgets/team", { cap_usd: 2 }, [MISSING, BAD, BAD, "200", BAD, INVALID]],
  ["DELETE", "/v1/budgets/team", undefined, [MISSING, BAD, BAD, "200", BAD, INVALID]],
  ["GET", "/v1/receipts", undefined, [MISSING, "200", "200", "200", "200", INVALID]],
  ["GET", "/v1/receipts/rcpt_mine", undefined, [MISSING, "200", BAD, "200", BAD, INVALID]],
  ["GET", "/v1/credits", undefined, [MISSING, BAD, BAD, "200", "200", INVALID]],
  ["GET", "/v1/usage", undefined, [MISSING, "200", "200", "200", "200", INVALID]],
  ["GET", "/v1/catalog", undefined, [MISSING, "200", "200", "200", "200", INVALID]],
  ["GET", "/v1/models", undefined, [MISSING, "200", "200", "200", "200", INVALID]],
  ["GET", "/v1/models/test/one", undefined, [MISSING, "200", "200", "200", "200", INVALID]],
  ["POST", "/v1/messages/count_tokens", {}, [MISSING, "200", "200", BAD, BAD, INVALID]],
  ["POST", "/admin/credits", { balance_id: "{balance}", amount_usd: 1, idempotency_key: "i" }, admin()],
  ["POST", "/admin/accounts/{balance}/suspend", { reason: "sanctions" }, admin()],
  ["POST", "/admin/accounts/{balance}/unsuspend", undefined, admin()],
  ["GET", "/admin/ledger/audit", undefined, admin()],
  ["POST", "/admin/reload", undefined, admin()],
  ["GET", "/admin/balances", undefined, admin()],
  ["GET", "/admin/balances/{balance}", undefined, admin()],
  ["GET", "/admin/balances/{balance}/keys", undefined, admin()],
  ["GET", "/admin/keys/{key}", undefined, admin()],
  ["GET", "/admin/hosts", undefined, admin()],
  ["GET", "/admin/config", undefined, admin()],
  ["GET", "/docs/errors", undefined, everybody()],
  ["GET", "/docs/api", undefined, everybody()],
  ["GET", "/openapi.json", undefined, everybody()],
  ["GET", "/status", undefined, everybody()],
  ["GET", "/dashboard", undefined, everybody()],
  ["GET", "/admin", undefined, everybody()],
  ["GET", "/dashboard/none.js", undefined, WHO.map(() => BAD)],
  ["GET", "/healthz", undefined, everybody()],
  ["GET", "/readyz", undefined, everybody()],
  ["GET", "/", undefined, everybody()],
  ["POST", "/v1/embeddings", {}, WHO.map(() => "400 unsupported_endpoint")],
  ["POST", "/admin/keys/{revoked}/revoke", undefined, admin()],
  ["DELETE", "/v1/keys/{key}", undefined, [MISSING, "200", BAD, "200", BAD, INVALID]],
];

function admin(): string[] {
  return [MISSING, INVALID, INVALID, INVALID, INVALID, "200"];
}
function everybody(): string[] {
  return WHO.map(() => "200");
}

beforeAll(async () => {
  house = new TestHouse();
  const mine = await house.setUp();
  const theirs = await house.setUp();
  bearers = {
    none: undefined,
    key: mine.key,
    otherKey: theirs.key,
    recovery: mine.recovery_secret,
    otherRecovery: theirs.recovery_secret,
    admin: ADMIN_TOKEN,
  };
  paths = { key: mine.id, balance: mine.balance_id };
  const { json } = await house.send("POST", "/v1/keys", { bearer: mine.recovery_secret });
  paths.revoked = json.id;
  const create = { name: "team", cap_usd: 1, window: "month" };
  await house.send("POST", "/v1/budgets", { bearer: mine.recovery_secret, body: create });
  house.receipts.push(storedReceipt("rcpt_mine", mine));
});
afterAll(() => house.stop());

const filled = (text: string): string => text.replace(/\{(\w+)\}/g, (_, name) => paths[name]!);

describe("who may do what", () => {
  for (const [method, path, body, cells] of MATRIX) {
    test(`${method} ${path}`, async () => {
      const seen = [];
      for (const who of WHO) {
        const bearer = bearers[who];
        const { status, json, headers } = await house.send(method, filled(path), {
          ...(bearer === undefined ? {} : { bearer }),
          ...(body === undefined ? {} : { body: filled(JSON.stringify(body)) }),
        });
        seen.push(status < 400 ? String(status) : `${status} ${json.error.code}`);
        if (path.startsWith("/v1") || path.startsWith("/admin/")) {
          expect(headers.get("x-gateway-receipt")).toMatch(/^rcpt_/);
        }
        if (status >= 400) {
          expect(json.error.message).toEndWith(`/docs/errors#${json.error.code}`);
          expect(Object.keys(json.error)).toEqual(["message", "type", "code", "param"]);
        }
      }
      expect(seen).toEqual(cells);
    });
  }
});

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
    const { key } = await house.setUp();
    const { status, json } = await house.send(method, path, {
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
  const { key } = await house.setUp();
  const as = async (authorization: string) => {
    const { status, json } = await house.send("GET", "/v1/me", { headers: { authorization } });
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
  expect((await house.send("GET", "/metrics")).text).toBe("gateway_up 1\n");
  const headers = { "x-forwarded-for": "192.0.2.1" };
  expect((await house.send("GET", "/metrics", { headers })).json.error.code).toBe("missing_api_key");
  expect((await house.send("GET", "/metrics", { headers, bearer: bearers.key! })).status).toBe(401);
  expect((await house.send("GET", "/metrics", { headers, bearer: ADMIN_TOKEN })).status).toBe(200);
});
