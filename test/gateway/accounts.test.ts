import { afterAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { causeOf, SUSPENSION_REASONS } from "../../src/units/errors/suspension.ts";
import { open } from "./open.ts";

const gateway = await open("open_tier: { requests_per_day: 3, accountless_requests_per_day: 2 }\n");
afterAll(() => gateway.close());

/** A session, by the newest mail in the outbox. */
async function signIn(email: string): Promise<string> {
  await gateway.send("POST", "/v1/auth/email", { json: { email } });
  const outbox = join(gateway.gateway.folder.path, "outbox");
  const newest = readFileSync(join(outbox, readdirSync(outbox).sort().at(-1)!), "utf8");
  const token = /#signin=(\S+)/.exec(newest)![1]!;
  return (await gateway.send("POST", "/v1/auth/email/verify", { json: { token } })).json.session;
}
const free = async (key: string) => {
  const { status, json } = await gateway.chat(key, { model: "gateway/auto:free" });
  return status === 200 ? "200" : json.error.code;
};
const newKey = async (bearer: string) => (await gateway.send("POST", "/v1/keys", { bearer })).json.key;

test("all keys of an account share one Open Tier allowance, those of claimed balances too", async () => {
  const made = await gateway.key(0);
  await gateway.send("POST", "/v1/me/claim", { bearer: made.key, json: { email: "kim@example.com" } });
  const session = await signIn("kim@example.com");
  await gateway.send("POST", `/v1/me/claims/${made.balance_id}`, { bearer: session });
  const [one, other] = [await newKey(session), await newKey(session)];
  expect([
    await free(one),
    await free(other),
    await free(made.key),
    await free(one),
    await free(made.key),
  ]).toEqual(["200", "200", "200", "free_quota_exceeded", "free_quota_exceeded"]);
  const { open_tier } = (await gateway.send("GET", "/v1/me", { bearer: session })).json;
  expect(open_tier).toMatchObject({ limit: 3, used: 3 });
  expect(await free(await newKey(await signIn("lee@example.com")))).toBe("200");
});

test("a suspended account's keys are refused with its reason, and served again once that is lifted", async () => {
  const session = await signIn("sam@example.com");
  const [key, { account }] = [
    await newKey(session),
    (await gateway.send("GET", "/v1/me", { bearer: session })).json,
  ];
  for (const reason of SUSPENSION_REASONS) {
    await gateway.admin(`/admin/accounts/${account.id}/suspend`, { reason });
    const { status, json } = await gateway.chat(key, { model: "gateway/auto:free" });
    expect([status, json.error.code]).toEqual([403, "account_suspended"]);
    expect(json.error.message).toContain(causeOf(reason));
    const me = (await gateway.send("GET", "/v1/me", { bearer: session })).json;
    expect([me.suspended, me.account.suspended]).toEqual([reason, reason]);
    expect((await gateway.send("POST", "/v1/keys", { bearer: session })).json.error.code).toBe(
      "account_suspended",
    );
    await gateway.admin(`/admin/accounts/${account.id}/unsuspend`, {});
    expect(await free(key)).toBe("200");
  }
});

test("who has credit on any balance is not limited as somebody without, also where the session names none", async () => {
  const session = await signIn("ann@example.com");
  const made = await gateway.key(0);
  await gateway.send("POST", "/v1/me/claim", { bearer: made.key, json: { email: "ann@example.com" } });
  await gateway.send("POST", `/v1/me/claims/${made.balance_id}`, { bearer: session });
  const send = async () => {
    const requests = Array.from({ length: 700 }, () => gateway.send("GET", "/v1/keys", { bearer: session }));
    return new Set((await Promise.all(requests)).map(({ status }) => status));
  };
  expect(await send()).toContain(429);
  await gateway.admin("/admin/credits", {
    ...{ balance_id: made.balance_id, amount_usd: 1, idempotency_key: "ann" },
  });
  expect(await send()).toEqual(new Set([200]));
});

test("a suspended balance's keys can be rotated and revoked, and no new secret lifts the suspension", async () => {
  const { id, key, recovery_secret, balance_id } = await gateway.key(1);
  const rotate = async (id: string, bearer: string) =>
    (await gateway.send("POST", `/v1/keys/${id}/rotate`, { bearer })).json;
  await gateway.admin(`/admin/accounts/${balance_id}/suspend`, { reason: "chargeback" });
  const second = await rotate(id, key);
  const third = await rotate(second.id, recovery_secret);
  for (const bearer of [second.key, third.key]) expect(bearer).toStartWith("or-live-");
  expect([await free(key), await free(second.key), await free(third.key)]).toEqual([
    "invalid_api_key",
    "invalid_api_key",
    "account_suspended",
  ]);
  expect((await gateway.chat(third.key)).json.error.code).toBe("account_suspended");
  const revoked = await gateway.send("DELETE", `/v1/keys/${third.id}`, { bearer: recovery_secret });
  expect([revoked.status, await free(third.key)]).toEqual([200, "invalid_api_key"]);
});

test.each(["/v1/chat/completions", "/v1/responses", "/v1/messages"])(
  "%s takes API keys only",
  async (path) => {
    const { key, recovery_secret } = await gateway.key(0);
    const session = await signIn("pat@example.com");
    const code = async (bearer: string) =>
      (await gateway.send("POST", path, { bearer, json: {} })).json.error.code;
    expect(await code(key)).toBe("invalid_request");
    for (const other of [session, recovery_secret]) expect(await code(other)).toBe("invalid_api_key");
    const headers = { cookie: `__Host-session=${session}`, origin: gateway.url };
    expect((await gateway.send("POST", path, { headers, json: {} })).json.error.code).toBe("missing_api_key");
  },
);
