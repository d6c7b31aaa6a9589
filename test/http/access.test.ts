import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Conformity } from "./conformity.ts";
import { ADMIN_TOKEN, storedReceipt, TestHouse } from "./house.ts";

/**
 * Every endpoint for every identity, each cell in a world of its own: `mine` is a balance that an account
 * claimed, whose key and receipt the paths name, and beside which a claim waits; `theirs` is an accountless
 * balance, and `otherSession` a stranger's. Cells are the status and, for errors, the code.
 */
let house: TestHouse;
beforeAll(() => {
  house = new TestHouse();
  house.settings.accountlessKeysPerAddressPerHour = 1_000_000;
});
afterAll(() => house.stop());

const WHO = [
  "none",
  "key",
  "otherKey",
  "session",
  "otherSession",
  "recovery",
  "otherRecovery",
  "admin",
] as const;
type Who = (typeof WHO)[number];

const MISSING = "401 missing_api_key";
const INVALID = "401 invalid_api_key";
const BAD = "400 invalid_request";

/** Cells in the order of WHO. */
const everybody = (is = "200") => WHO.map(() => is);
const admin = () => WHO.map((who) => (who === "none" ? MISSING : who === "admin" ? "200" : INVALID));
const who = (cells: Partial<Record<Who, string>>) =>
  WHO.map((one) => cells[one] ?? (one === "none" ? MISSING : one === "admin" ? INVALID : BAD));
const each = (is: string, ...whos: Who[]) => who(Object.fromEntries(whos.map((one) => [one, is])));

const keysAndOwners = () =>
  each("200", "key", "otherKey", "session", "otherSession", "recovery", "otherRecovery");
const owners = (is = "200") => each(is, "session", "otherSession", "recovery", "otherRecovery");
const mine = () => each("200", "key", "session", "recovery");
const myOwners = () => each("200", "session", "recovery");
const sessions = (is: string) => each(is, "session", "otherSession");

const MATRIX: [method: string, path: string, body: unknown, cells: string[]][] = [
  ["POST", "/v1/keys", undefined, ["201", BAD, BAD, "201", "201", "201", "201", INVALID]],
  ["GET", "/v1/keys", undefined, keysAndOwners()],
  ["GET", "/v1/keys/{key}", undefined, mine()],
  ["PATCH", "/v1/keys/{key}", { rpm_limit: 50 }, mine()],
  ["POST", "/v1/keys/{key}/rotate", undefined, mine()],
  ["POST", "/v1/keys/{key}/revoke", undefined, mine()],
  ["DELETE", "/v1/keys/{key}", undefined, mine()],
  ["GET", "/v1/me", undefined, keysAndOwners()],
  ["POST", "/v1/me/claim", { email: "new@example.com" }, each("200", "otherKey")],
  ["DELETE", "/v1/me/claim", undefined, each("200", "recovery", "otherRecovery")],
  ["GET", "/v1/me/claims", undefined, sessions("200")],
  ["POST", "/v1/me/claims/{claimed}", undefined, each("200", "session")],
  ["DELETE", "/v1/me/claims/{claimed}", undefined, each("200", "session")],
  ["POST", "/v1/auth/email", { email: "any@example.com" }, everybody("202")],
  ["POST", "/v1/auth/email/preview", { token: "{token}" }, everybody()],
  ["POST", "/v1/auth/email/verify", { token: "{token}" }, everybody()],
  ["POST", "/v1/auth/wallet", { address: `0x${"ab".repeat(20)}`, chain_id: 1 }, everybody()],
  ["POST", "/v1/auth/wallet/verify", { message: "m", signature: "0x1234" }, everybody(BAD)],
  ["POST", "/v1/auth/logout", undefined, sessions("204")],
  ["GET", "/v1/auth/sessions", undefined, sessions("200")],
  ["DELETE", "/v1/auth/sessions", undefined, sessions("200")],
  ["DELETE", "/v1/auth/sessions/{session}", undefined, each("200", "session")],
  ["POST", "/v1/me/recovery", undefined, owners()],
  ["DELETE", "/v1/me", { confirm: "{account}" }, each("200", "session")],
  ["GET", "/v1/budgets", undefined, owners()],
  ["POST", "/v1/budgets", { name: "b", cap_usd: 1, window: "day" }, owners("201")],
  ["GET", "/v1/budgets/team", undefined, myOwners()],
  ["PATCH", "/v1/budgets/team", { cap_usd: 2 }, myOwners()],
  ["DELETE", "/v1/budgets/team", undefined, myOwners()],
  ["GET", "/v1/receipts", undefined, keysAndOwners()],
  ["GET", "/v1/receipts/{receipt}", undefined, mine()],
  ["GET", "/v1/credits", undefined, owners()],
  ["GET", "/v1/usage", undefined, keysAndOwners()],
  ["GET", "/v1/catalog", undefined, keysAndOwners()],
  ["GET", "/v1/models", undefined, keysAndOwners()],
  ["GET", "/v1/models/test%2Fone", undefined, keysAndOwners()],
  ["GET", "/v1/models/test/one", undefined, keysAndOwners()],
  ["POST", "/v1/messages/count_tokens", {}, each("200", "key", "otherKey")],
  [
    "POST",
    "/admin/credits",
    { balance_id: "{balance}", amount_usd: 1, idempotency_key: "{balance}" },
    admin(),
  ],
  [
    "POST",
    "/admin/debits",
    { balance_id: "{balance}", amount_usd: "all", idempotency_key: "{balance} back" },
    admin(),
  ],
  ["POST", "/admin/accounts/{account}/suspend", { reason: "sanctions" }, admin()],
  ["POST", "/admin/accounts/{account}/unsuspend", undefined, admin()],
  ["GET", "/admin/accounts?email=any@example.com", undefined, admin()],
  ["GET", "/admin/accounts/{account}", undefined, admin()],
  ["POST", "/admin/accounts/{account}/detach", { balance_id: "{balance}" }, admin()],
  ["GET", "/admin/accounts/{account}/suspensions", undefined, admin()],
  ["GET", "/admin/ledger/audit", undefined, admin()],
  ["POST", "/admin/reload", undefined, admin()],
  ["GET", "/admin/balances", undefined, admin()],
  ["GET", "/admin/balances/{balance}", undefined, admin()],
  ["GET", "/admin/balances/{balance}/keys", undefined, admin()],
  ["GET", "/admin/balances/{balance}/receipts", undefined, admin()],
  ["GET", "/admin/balances/{balance}/budgets", undefined, admin()],
  ["PATCH", "/admin/balances/{balance}/budgets/team", { cap_usd: 3 }, admin()],
  ["GET", "/admin/receipts/{receipt}", undefined, admin()],
  ["POST", "/admin/keys", { name: "theirs" }, admin().map((is) => (is === "200" ? "201" : is))],
  ["GET", "/admin/keys/{key}", undefined, admin()],
  ["PATCH", "/admin/keys/{key}", { rpm_limit: 500 }, admin()],
  ["POST", "/admin/keys/{key}/revoke", undefined, admin()],
  ["GET", "/admin/usage", undefined, admin()],
  ["GET", "/admin/balances/{balance}/credits", undefined, admin()],
  ["GET", "/admin/hosts", undefined, admin()],
  ["GET", "/admin/nodes", undefined, admin()],
  ["POST", "/admin/nodes/node_lost/close", undefined, admin()],
  ["GET", "/admin/config", undefined, admin()],
  ["GET", "/metrics", undefined, admin()],
  ["GET", "/docs/errors", undefined, everybody()],
  ["GET", "/docs/api", undefined, everybody()],
  ["GET", "/openapi.json", undefined, everybody()],
  ["GET", "/status", undefined, everybody()],
  ["GET", "/dashboard", undefined, everybody()],
  ["GET", "/admin", undefined, everybody()],
  ["GET", "/dashboard/none.js", undefined, everybody(BAD)],
  ["GET", "/healthz", undefined, everybody()],
  ["GET", "/favicon.ico", undefined, everybody()],
  ["GET", "/readyz", undefined, everybody()],
  ["GET", "/", undefined, everybody()],
  ["POST", "/v1/embeddings", {}, everybody("400 unsupported_endpoint")],
];

/** A world and who lives in it. From a network of its own, because much is counted by network. */
async function makeWorld(operation: string) {
  const from = { "x-forwarded-for": `198.51.100.${++worlds % 250}` };
  const email = `mine${worlds}@example.com`;
  const send = (method: string, path: string, options: object = {}) =>
    house.send(method, path, { headers: from, ...options });
  const tokenFor = (to: string) =>
    /#signin=(\S+)/.exec(house.mails.findLast((mail) => mail.to === to)!.text)![1]!;
  const signIn = async (to: string) =>
    (await send("POST", "/v1/auth/email/verify", { body: { token: tokenFor(to) } })).json;

  const [mine, theirs, offered] = [await house.setUp(), await house.setUp(), await house.setUp()];
  const claim = { email };
  await send("POST", "/v1/me/claim", { bearer: mine.key, body: claim });
  const { session, account_id } = await signIn(email);
  await send("POST", "/v1/me/claim", { bearer: offered.key, body: claim });
  // Only what waits can be withdrawn, and only what was not claimed can be claimed.
  if (operation === "DELETE /v1/me/claim") {
    await send("POST", "/v1/me/claim", { bearer: theirs.key, body: claim });
  }
  const stranger = `stranger${worlds}@example.com`;
  await send("POST", "/v1/auth/email", { body: { email: stranger } });
  const otherSession = (await signIn(stranger)).session;
  await send("POST", "/v1/auth/email", { body: { email: stranger } });
  const team = { name: "team", cap_usd: 1, window: "month" };
  await send("POST", "/v1/budgets", { bearer: mine.recovery_secret, body: team });
  if (operation === "POST /admin/debits") {
    const credit = { balance_id: mine.balance_id, amount_usd: 1, idempotency_key: mine.balance_id };
    await send("POST", "/admin/credits", { bearer: ADMIN_TOKEN, body: credit });
  }
  house.receipts.push(storedReceipt(`rcpt_${worlds}`, mine));
  const bearers: Record<Who, string | null> = {
    none: null,
    key: mine.key,
    otherKey: theirs.key,
    session,
    otherSession,
    recovery: mine.recovery_secret,
    otherRecovery: theirs.recovery_secret,
    admin: ADMIN_TOKEN,
  };
  const names: Record<string, string> = {
    key: mine.id,
    balance: mine.balance_id,
    account: account_id,
    claimed: offered.balance_id,
    receipt: `rcpt_${worlds}`,
    token: tokenFor(stranger),
    session: (await send("GET", "/v1/auth/sessions", { bearer: session })).json.data[0].id,
  };
  const filled = (text: string): string => text.replace(/\{(\w+)\}/g, (_, name) => names[name]!);
  const ask = async (method: string, path: string, body: unknown, credential: Record<string, string>) => {
    // A session that names no balance acts on its account's own, beside which `mine` was claimed.
    const isOwners = Object.values(credential).some((value) => value.includes(session));
    const headers = isOwners ? { ...credential, "x-gateway-balance": mine.balance_id } : credential;
    const {
      status,
      json,
      headers: answered,
    } = await house.send(method, filled(path), {
      headers: { ...from, ...headers },
      ...(body === undefined ? {} : { body: filled(JSON.stringify(body)) }),
    });
    if (path.startsWith("/v1") || path.startsWith("/admin/")) {
      expect(answered.get("x-gateway-receipt")).toMatch(/^rcpt_/);
    }
    if (status < 400) return String(status);
    expect(json.error.message).toEndWith(`/docs/errors#${json.error.code}`);
    expect(Object.keys(json.error)).toEqual(["message", "type", "code", "param"]);
    return `${status} ${json.error.code}`;
  };
  return { bearers, ask };
}
let worlds = 0;

const bearing = (secret: string | null): Record<string, string> =>
  secret === null ? {} : { authorization: `Bearer ${secret}` };

describe("who may do what", () => {
  for (const [method, path, body, cells] of MATRIX) {
    test(`${method} ${path}`, async () => {
      const seen = [];
      for (const one of WHO) {
        const { ask, bearers } = await makeWorld(`${method} ${path}`);
        seen.push(`${one}: ${await ask(method, path, body, bearing(bearers[one]))}`);
      }
      expect(seen).toEqual(WHO.map((one, index) => `${one}: ${cells[index]}`));
    });
  }

  test("a cookie is its session to the gateway's own pages; to others it changes nothing", async () => {
    for (const [method, path, body, cells] of MATRIX) {
      const inCookie = async (origin: string) => {
        const { ask, bearers } = await makeWorld(`${method} ${path}`);
        return ask(method, path, body, { origin, cookie: `__Host-session=${bearers.session}` });
      };
      const [none, session] = [cells[0]!, cells[WHO.indexOf("session")]!];
      const own = path.startsWith("/admin/") || path === "/metrics" ? none : session;
      // Pages elsewhere may try the endpoints that take a key, where a cookie says nothing.
      const mayAsk = method === "GET" || /count_tokens|embeddings/.test(path);
      const foreign = mayAsk ? own : BAD;
      expect(`${method} ${path} ${await inCookie("http://gateway.test")}`).toBe(`${method} ${path} ${own}`);
      expect(`${method} ${path} ${await inCookie("https://evil.example")}`).toBe(
        `${method} ${path} ${foreign}`,
      );
    }
  });

  test("the table has every endpoint but those that generate", async () => {
    const { operations } = await Conformity.of(house.url);
    const shape = (path: string) => path.replaceAll(/\{\w+\}|\?.*$/g, (part) => (part[0] === "?" ? "" : "*"));
    const known = MATRIX.map(([method, path]) => `${method} ${shape(path)}`);
    const fits = (name: string) => {
      const pattern = new RegExp(`^${shape(name).replaceAll("*", "[^/]+")}$`);
      return known.some((one) => pattern.test(one));
    };
    const missing = operations.map(({ name }) => name).filter((name) => !fits(name));
    expect(missing).toEqual(["POST /v1/chat/completions", "POST /v1/responses", "POST /v1/messages"]);
  });
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
  const stranger = await house.send("GET", "/metrics", { headers });
  expect(stranger.json.error).toMatchObject({
    code: "missing_api_key",
    message: expect.stringContaining("Bearer <ADMIN_TOKEN>"),
  });
  expect((await house.send("GET", "/metrics", { headers, bearer: (await house.setUp()).key })).status).toBe(
    401,
  );
  expect((await house.send("GET", "/metrics", { headers, bearer: ADMIN_TOKEN })).status).toBe(200);
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
  expect((await house.send("GET", "/metrics", { headers })).status).toBe(status);
});
