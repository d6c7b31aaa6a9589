import { afterAll, expect, test } from "bun:test";
import { open } from "./open.ts";

const gateway = await open("");
const mine = await gateway.key(1);
const second = (await gateway.send("POST", "/v1/keys", { bearer: mine.recovery_secret, json: {} })).json;
await gateway.chat(mine.key, { model: "sim/echo" });
await gateway.chat(second.key, { model: "sim/echo:free" });
const stranger = await gateway.key(1);
await gateway.chat(stranger.key, { model: "sim/echo" });
afterAll(() => gateway.close());

const usage = async (bearer: string, query = "") =>
  (await gateway.send("GET", `/v1/usage${query}`, { bearer })).json;

test("an owner's usage is that of all keys of the balance, up to the last request, and nobody else's", async () => {
  const { stretches, routes, truncated } = await usage(mine.recovery_secret);
  expect(stretches).toMatchObject([{ name: "sim/echo", requests: 2, failed: 0 }]);
  expect(stretches[0].cost_usd).toBeGreaterThan(0);
  expect(routes).toMatchObject([{ model: "sim/echo", host: "sim", requests: 2 }]);
  expect(truncated).toBe(false);
});

test("a key sees its own usage, whatever it asks for; an owner can ask for one key's", async () => {
  expect((await usage(second.key, `?key_id=${mine.id}`)).stretches).toMatchObject([
    { requests: 1, cost_usd: 0 },
  ]);
  expect((await usage(mine.recovery_secret, `?key_id=${mine.id}`)).stretches).toMatchObject([
    { requests: 1 },
  ]);
  expect((await usage(mine.recovery_secret, "?key_id=key_none")).stretches).toEqual([]);
});

test("periods are a day in hours, a week and a month in days", async () => {
  const stretch = async (period: string) =>
    (await usage(mine.key, `?period=${period}`)).stretch_ms / 3_600_000;
  expect([await stretch("day"), await stretch("week"), await stretch("month")]).toEqual([1, 24, 24]);
  expect((await usage(mine.key, "?period=year")).error).toMatchObject({ param: "period" });
});

test("receipts are filtered by key, model and state", async () => {
  const found = async (query: string) =>
    (await gateway.send("GET", `/v1/receipts?${query}`, { bearer: mine.recovery_secret })).json.data.length;
  expect(await found("")).toBe(2);
  expect(await found(`key_id=${second.id}`)).toBe(1);
  expect(await found("model=sim/echo")).toBe(2);
  expect(await found("model=sim/echo:free")).toBe(1);
  expect(await found("model=other/one")).toBe(0);
  expect(await found("state=settled")).toBe(2);
  expect(await found("state=failed")).toBe(0);
});

test.each(["refused", "done", ""])("a state that no list has, `%s`, is refused", async (state) => {
  const path = `/v1/receipts?state=${state}`;
  const { status, json } = await gateway.send("GET", path, { bearer: mine.key });
  expect([status, json.error.param]).toEqual([400, "state"]);
  expect(json.error.message).toContain("settled, written_off, failed, cancelled, recovered");
});

test("credits are listed, newest first", async () => {
  await gateway.credit(mine.balance_id, 2.5);
  const { json } = await gateway.send("GET", "/v1/credits", { bearer: mine.recovery_secret });
  expect(json.data.map(({ amount_usd }: { amount_usd: number }) => amount_usd)).toEqual([2.5, 1]);
});
