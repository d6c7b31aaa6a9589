import { afterAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Clock, type EpochMs, HOUR_MS, systemClock } from "../../src/units/clock.ts";
import { open } from "./open.ts";

let hoursAgo = 0;
const clock: Clock = {
  ...systemClock,
  now: () => (systemClock.now() - hoursAgo * HOUR_MS) as EpochMs,
};

hoursAgo = 8 * 24;
const gateway = await open("", {}, clock);
const first = await gateway.key(1, { name: "nightly" });
const second = await gateway.key(1);
await gateway.chat(first.key, { model: "sim/echo" });
hoursAgo = 0;
await gateway.chat(first.key, { model: "sim/echo" });
await gateway.chat(second.key, { model: "sim/echo" });
await gateway.chat(second.key, { model: "sim/echo" });
await gateway.chat(second.key, { model: "sim/echo:free" });
afterAll(() => gateway.close());

const usage = async (query = "") => (await gateway.admin(`/admin/usage${query}`)).json;
const cents = (usd: number) => Math.round(usd * 1e9);

test("everybody's usage is shown up to the last request, most expensive first, next to the week before", async () => {
  const { total, stretches, balances, keys, models, hosts, counted_since } = await usage();
  const one = total.cost_usd / 3;
  expect(one).toBeGreaterThan(0);
  expect(total).toMatchObject({ requests: 4, failed: 0 });
  expect(cents(total.cost_before_usd)).toBe(cents(one));
  expect(stretches.map(({ name, requests }: { name: string; requests: number }) => [name, requests])).toEqual(
    [["sim/echo", 4]],
  );
  expect(balances.data).toMatchObject([
    { balance_id: second.balance_id, account_id: null, email: null, requests: 3, cost_before_usd: 0 },
    { balance_id: first.balance_id, requests: 1 },
  ]);
  expect(cents(balances.data[0].cost_usd)).toBe(cents(2 * one));
  expect(cents(balances.data[1].cost_before_usd)).toBe(cents(one));
  expect(keys.data).toMatchObject([
    { key_id: second.id, name: null, balance_id: second.balance_id },
    { key_id: first.id, name: "nightly", prefix: first.key.slice(0, 12) },
  ]);
  expect(models.data).toMatchObject([{ model: "sim/echo", requests: 4 }]);
  expect(hosts.data).toMatchObject([{ host: "sim", requests: 4 }]);
  expect(balances.rest).toMatchObject({ rows: 0, requests: 0, cost_usd: 0 });
  expect(counted_since).toBeNull();
});

test("a list that is cut ends in the sum of the rest", async () => {
  const { keys } = await usage("?limit=1");
  expect(keys.data).toHaveLength(1);
  expect(keys.rest).toMatchObject({ rows: 1, requests: 1 });
});

test("a list is ordered as asked", async () => {
  const { keys } = await usage("?order=growth&limit=1");
  expect(keys.data).toMatchObject([{ key_id: second.id }]);
});

test("who has an account is named by it", async () => {
  await gateway.send("POST", "/v1/me/claim", { bearer: second.key, json: { email: "ada@example.com" } });
  const outbox = join(gateway.gateway.folder.path, "outbox");
  const mail = readFileSync(join(outbox, readdirSync(outbox)[0]!), "utf8");
  const token = /#signin=(or-link-\w+)/.exec(mail)![1]!;
  await gateway.send("POST", "/v1/auth/email/verify", { json: { token } });
  const { balances } = await usage();
  expect(balances.data[0]).toMatchObject({ balance_id: second.balance_id, email: "ada@example.com" });
  expect(balances.data[0].account_id).toStartWith("acct_");
});

test.each([
  ["?period=year", "period"],
  ["?order=name", "order"],
  ["?limit=0", "limit"],
  ["?limit=1001", "limit"],
])("%s is refused, naming `%s`", async (query, param) => {
  expect((await usage(query)).error).toMatchObject({ code: "invalid_request", param });
});

test("a period whose predecessor's receipts are deleted is compared with nothing", async () => {
  const short = await open("receipts: { keep_days: 31 }");
  const made = await short.key(1);
  await short.chat(made.key, { model: "sim/echo" });
  const before = async (period: string) =>
    (await short.admin(`/admin/usage?period=${period}`)).json.total.cost_before_usd;
  expect([await before("day"), await before("week"), await before("month")]).toEqual([0, 0, null]);
  await short.close();
});

test("what no host could serve is counted as failed", async () => {
  const before = (await usage()).total;
  gateway.folder.configure(`
hosts: [{ id: h, base_url: http://127.0.0.1:1/v1, speaks: [chat.completions] }]
models: [{ id: test/model, context_length: 1000, max_output_tokens: 100, price: { input: 1, output: 2 }, routes: [{ host: h, model: m }] }]
`);
  expect(await gateway.gateway.reload()).toBeNull();
  expect((await gateway.chat(first.key)).status).toBe(503);
  expect((await usage()).total).toMatchObject({ requests: before.requests + 1, failed: before.failed + 1 });
});
