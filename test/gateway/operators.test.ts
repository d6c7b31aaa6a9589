import { afterAll, expect, test } from "bun:test";
import type { OperatorAnswer } from "../../src/api/operators.ts";
import { epochMs, systemClock } from "../../src/units/clock.ts";
import { hashSecret } from "../../src/units/secret-hash.ts";
import { closeAll } from "../fakes/close-all.ts";
import { ADMIN } from "../process/gateway.ts";
import { open } from "./open.ts";

const CI_TOKEN = "a-token-of-the-deployment";
const CONFIG = `trusted_proxies: [127.0.0.0/8]
operators:
  - { name: ci, role: read, token: "sha256:${hashSecret(CI_TOKEN)}" }
`;
let later = 0;
const gateway = await open(CONFIG, {}, { ...systemClock, now: () => epochMs(systemClock.now() + later) });
afterAll(() => closeAll(gateway));

const as = (bearer: string, method: string, path: string, json?: object) =>
  gateway.send(method, path, { bearer, ...(json === undefined ? {} : { json }) });

async function added(name: string, role: string, more: object = {}): Promise<string> {
  const { status, json } = await as(ADMIN, "POST", "/admin/operators", { name, role, ...more });
  expect(status).toBe(201);
  return json.token;
}

test("an operator is let in with the role, and the refusal names the role that is needed", async () => {
  const token = await added("eve", "read");
  expect(token).toStartWith("or-op-");
  expect((await as(token, "GET", "/admin/me")).json).toMatchObject({
    name: "eve",
    role: "read",
    source: "store",
  });
  expect((await as(token, "GET", "/admin/balances")).status).toBe(200);
  expect((await as(token, "GET", "/metrics")).status).toBe(200);
  const { status, json } = await as(token, "POST", "/admin/keys", {});
  expect([status, json.error.code, json.error.type]).toEqual([
    403,
    "invalid_request",
    "invalid_request_error",
  ]);
  expect(json.error.message).toContain("the role `operate`, and `eve` has the role `read`");
  const operating = await added("olga", "operate");
  expect((await as(operating, "POST", "/admin/keys", {})).status).toBe(201);
  expect((await as(operating, "POST", "/admin/reload")).json.error.message).toContain("role `admin`");
});

test("a token is refused from the next request on once it was rotated or removed", async () => {
  const first = await added("rolf", "admin");
  const { token } = (await as(first, "POST", "/admin/operators/rolf/rotate")).json;
  expect((await as(first, "GET", "/admin/me")).json.error.code).toBe("invalid_api_key");
  expect((await as(token, "GET", "/admin/me")).status).toBe(200);
  expect((await as(token, "DELETE", "/admin/operators/rolf")).json).toEqual({ name: "rolf", removed: true });
  expect((await as(token, "GET", "/admin/me")).status).toBe(401);
});

test("a token expires", async () => {
  const inADay = new Date(Date.now() + 86_400_000).toISOString();
  const token = await added("brief", "read", { expires_at: inADay });
  expect((await as(token, "GET", "/admin/me")).json.expires_at).toBe(inADay);
  later = 2 * 86_400_000;
  expect((await as(token, "GET", "/admin/me")).json.error.code).toBe("invalid_api_key");
  expect((await as(ADMIN, "POST", "/admin/operators/brief/rotate")).json.error.param).toBe("expires_at");
  const renewed = await as(ADMIN, "POST", "/admin/operators/brief/rotate", { expires_at: null });
  expect((await as(renewed.json.token, "GET", "/admin/me")).json.expires_at).toBeNull();
});

test("operators of the configuration come and go with it", async () => {
  expect((await as(CI_TOKEN, "GET", "/admin/me")).json).toMatchObject({
    name: "ci",
    source: "configuration",
  });
  const refusal = await as(ADMIN, "DELETE", "/admin/operators/ci");
  expect(refusal.json.error.message).toContain("in the configuration");
  const names = (await gateway.admin("/admin/operators")).json.data.map(({ name }: OperatorAnswer) => name);
  expect(names.slice(0, 2)).toEqual(["admin", "ci"]);
  expect(JSON.stringify((await gateway.admin("/admin/config")).json)).not.toContain(hashSecret(CI_TOKEN));
  gateway.folder.configure("trusted_proxies: [127.0.0.0/8]\n");
  expect((await as(ADMIN, "POST", "/admin/reload")).status).toBe(200);
  expect((await as(CI_TOKEN, "GET", "/admin/me")).status).toBe(401);
});

test.each([
  [{ name: "Eve", role: "read" }, "name"],
  [{ name: "admin", role: "read" }, "name"],
  [{ name: "twice", role: "read" }, "name"],
  [{ name: "eve2", role: "owner" }, "role"],
  [{ name: "eve2", role: "read", expires_at: "tomorrow" }, "expires_at"],
  [{ name: "eve2", role: "read", expires_at: "2020-01-01T00:00:00Z" }, "expires_at"],
])("%j is refused for `%s`", async (json, param) => {
  if (json.name === "twice") await added("twice", "read");
  const reply = await as(ADMIN, "POST", "/admin/operators", json);
  expect([reply.status, reply.json.error.param]).toEqual([400, param]);
});

test("operators and what they do are in the log of changes, and no token is", async () => {
  const token = await added("lena", "operate");
  const { balance_id: balance } = await gateway.key(0);
  const json = { reason: "acceptable_use" };
  expect((await as(token, "POST", `/admin/accounts/${balance}/suspend`, json)).status).toBe(200);
  const decisions = (await gateway.admin(`/admin/accounts/${balance}/suspensions`)).json.data;
  expect(decisions[0].by).toBe("lena");
  const { data } = (await gateway.admin(`/admin/changes?by=lena`)).json;
  expect(data[0]).toMatchObject({ action: "balance.suspended", by: { kind: "operator", id: "lena" } });
  const added1 = (await gateway.admin("/admin/changes?subject=lena")).json.data[0];
  expect(added1).toMatchObject({ action: "operator.added", after: { role: "operate" }, by: { id: "admin" } });
  const all = (await gateway.admin("/admin/changes?limit=200")).text;
  expect(all).not.toContain("or-op-");
  expect(all).not.toContain(hashSecret(token));
});

test("wrong tokens lock no operator out", async () => {
  const token = await added("calm", "read");
  const guesses = Array.from({ length: 70 }, (_, at) => as(`or-op-${at}`, "GET", "/admin/me"));
  const statuses = (await Promise.all(guesses)).map(({ status }) => status);
  expect(statuses.filter((status) => status !== 401 && status !== 429)).toEqual([]);
  expect(statuses).toContain(429);
  expect((await as(token, "GET", "/admin/me")).status).toBe(200);
});
