import { afterAll, expect, test } from "bun:test";
import type { ChangeAnswer } from "../../src/api/changes.ts";
import { closeAll } from "../fakes/close-all.ts";
import { ADMIN } from "../process/gateway.ts";
import { open } from "./open.ts";

const gateway = await open("trusted_proxies: [127.0.0.0/8]");
afterAll(() => closeAll(gateway));

/** Newest first: who, what, and the fields that differ. */
async function changesOf(balance: string): Promise<ChangeAnswer[]> {
  const { json } = await gateway.admin(`/admin/changes?balance_id=${balance}`);
  return json.data;
}

const by = (bearer: string, method: string, path: string, json?: object) =>
  gateway.send(method, path, {
    bearer,
    headers: { "x-forwarded-for": "203.0.113.77" },
    ...(json === undefined ? {} : { json }),
  });

test("each change is a row with who, what, before and after", async () => {
  const { id, key, balance_id: balance, recovery_secret: owner } = await gateway.key(0);
  expect(await changesOf(balance)).toEqual([]);
  const steps: readonly (readonly [string, string, string, object?])[] = [
    [
      ADMIN,
      "POST",
      "/admin/credits",
      { balance_id: balance, amount_usd: 5, idempotency_key: `${balance} a` },
    ],
    [ADMIN, "POST", "/admin/debits", { balance_id: balance, amount_usd: 2, idempotency_key: `${balance} b` }],
    [key, "PATCH", `/v1/keys/${id}`, { rpm_limit: 7 }],
    [owner, "PATCH", `/v1/keys/${id}`, { name: "ours", daily_limit_usd: 3 }],
    [owner, "POST", "/v1/budgets", { name: "team", cap_usd: 1, window: "month" }],
    [owner, "PATCH", "/v1/budgets/team", { cap_usd: 2 }],
    [owner, "DELETE", "/v1/budgets/team"],
    [ADMIN, "POST", `/admin/accounts/${balance}/suspend`, { reason: "sanctions", by: "eve", note: "hush" }],
    [ADMIN, "POST", `/admin/accounts/${balance}/unsuspend`, {}],
    [owner, "POST", `/v1/keys/${id}/rotate`],
  ];
  for (const [bearer, method, path, json] of steps)
    expect((await by(bearer, method, path, json)).status).toBeLessThan(300);
  const rows = (await changesOf(balance)).reverse();
  expect(rows.map((row) => `${row.by.kind} ${row.by.id}: ${row.action} ${row.subject}`)).toEqual([
    `operator admin: balance.credited ${balance}`,
    `operator admin: balance.debited ${balance}`,
    `key ${id}: key.changed ${id}`,
    `owner ${balance}: key.changed ${id}`,
    `owner ${balance}: budget.created team`,
    `owner ${balance}: budget.changed team`,
    `owner ${balance}: budget.deleted team`,
    `operator admin: balance.suspended ${balance}`,
    `operator admin: balance.unsuspended ${balance}`,
    `owner ${balance}: key.rotated ${id}`,
  ]);
  expect(rows[2]).toMatchObject({ before: { rpm_limit: 60 }, after: { rpm_limit: 7 } });
  expect(rows[3]).toMatchObject({
    before: { name: null, daily_limit_usd: 5 },
    after: { name: "ours", daily_limit_usd: 3 },
    network: "203.0.113.0/24",
  });
  expect(rows[5]).toMatchObject({ before: { cap_usd: 1 }, after: { cap_usd: 2 } });
  expect(rows[3]!.request_id).toStartWith("rcpt_");
  const text = JSON.stringify(rows);
  for (const secret of [key, owner, "hush", "eve", "203.0.113.77"]) expect(text).not.toContain(secret);
});

test("a change that changes nothing is no row", async () => {
  const { id, key, balance_id: balance } = await gateway.key(0);
  for (let times = 0; times < 2; times++) await by(key, "PATCH", `/v1/keys/${id}`, { rpm_limit: 7 });
  for (let times = 0; times < 2; times++) await by(key, "DELETE", `/v1/keys/${id}`);
  expect((await changesOf(balance)).map(({ action }) => action)).toEqual(["key.revoked", "key.changed"]);
});

test("owners see what was changed on their balance, and not which operator did it", async () => {
  const [own, other] = [await gateway.key(1), await gateway.key(1)];
  await by(own.recovery_secret, "PATCH", `/v1/keys/${own.id}`, { rpm_limit: 9 });
  const { json } = await by(own.recovery_secret, "GET", "/v1/changes");
  expect(json.data.map((row: ChangeAnswer) => [row.action, row.by, row.network])).toEqual([
    ["key.changed", { kind: "owner", id: own.balance_id, name: "recovery secret" }, "203.0.113.0/24"],
    ["balance.credited", { kind: "operator", id: null, name: null }, null],
  ]);
  const others = await by(other.recovery_secret, "GET", "/v1/changes");
  expect(others.json.data.map((row: ChangeAnswer) => row.balance_id)).toEqual([other.balance_id]);
  expect((await by(own.key, "GET", "/v1/changes")).json.error.code).toBe("invalid_request");
});

test("the log is filtered, and read by pages", async () => {
  const { id, key, balance_id: balance } = await gateway.key(0);
  for (const limit of [9, 8, 7, 6, 5]) await by(key, "PATCH", `/v1/keys/${id}`, { rpm_limit: limit });
  const seen: number[] = [];
  for (let before = ""; ; ) {
    const { json } = await gateway.admin(`/admin/changes?subject=${id}&limit=2${before}`);
    seen.push(...json.data.map((row: ChangeAnswer) => Number(row.after.rpm_limit)));
    if (!json.has_more) break;
    before = `&before=${json.data.at(-1).id}`;
  }
  expect(seen).toEqual([5, 6, 7, 8, 9]);
  const count = async (query: string) => (await gateway.admin(`/admin/changes?${query}`)).json.data.length;
  expect(await count(`by=${id}`)).toBe(5);
  expect(await count(`by=${id}&action=key.rotated`)).toBe(0);
  expect(await count(`balance_id=${balance}&since=2000-01-01T00:00:00Z`)).toBe(5);
  expect(await count(`balance_id=${balance}&until=2000-01-01T00:00:00Z`)).toBe(0);
  expect((await gateway.admin("/admin/changes?since=yesterday")).json.error.param).toBe("since");
  expect((await gateway.admin("/admin/changes?action=key.found")).json.error.param).toBe("action");
});

test("a reload is a change, with what differs", async () => {
  const { folder } = gateway;
  folder.configure("trusted_proxies: [127.0.0.0/8]\ncontact: mailto:help@example.com\n");
  expect((await by(ADMIN, "POST", "/admin/reload")).status).toBe(200);
  const { data } = (await gateway.admin("/admin/changes?action=configuration.reloaded")).json;
  expect(data).toHaveLength(1);
  expect(data[0]).toMatchObject({
    by: { kind: "operator", id: "admin" },
    before: { contact: null },
    after: { contact: "mailto:help@example.com" },
  });
  folder.configure("trusted_proxies: [nonsense]\n");
  expect((await by(ADMIN, "POST", "/admin/reload")).status).toBe(400);
  const after = (await gateway.admin("/admin/changes?action=configuration.reloaded")).json.data;
  expect(after).toHaveLength(1);
});
