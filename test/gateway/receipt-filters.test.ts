import { expect, test } from "bun:test";
import { open } from "./open.ts";
import { findsReceipts } from "./receipt-filters.ts";

test("receipts are found by time, host, cost, error, state and model, by owners and the operator", async () => {
  const gateway = await open("");
  await findsReceipts(gateway);
  await gateway.close();
});

test("usage is split by model, key and host, and says when each key was last used", async () => {
  const gateway = await open("");
  const first = await gateway.key(5);
  const second = (await gateway.send("POST", "/v1/keys", { bearer: first.recovery_secret })).json;
  for (const { key } of [first, second, second]) await gateway.chat(key, { model: "sim/echo" });
  const usage = async (query: string) =>
    (await gateway.send("GET", `/v1/usage?${query}`, { bearer: first.recovery_secret })).json;
  const split = async (by: string, period: string) => {
    const sums = new Map<string, number>();
    for (const { name, requests } of (await usage(`by=${by}&period=${period}`)).stretches)
      sums.set(name, (sums.get(name) ?? 0) + requests);
    return Object.fromEntries(sums);
  };
  expect(await split("model", "hour")).toEqual({ "sim/echo": 3 });
  expect(await split("key", "day")).toEqual({ [first.id]: 1, [second.id]: 2 });
  expect(await split("host", "month")).toEqual({ sim: 3 });
  const { keys } = await usage("");
  expect(keys).toMatchObject([
    { key_id: second.id, requests: 2 },
    { key_id: first.id, requests: 1 },
  ]);
  expect(Date.parse(keys[0].last_used_at)).toBeGreaterThanOrEqual(Date.parse(keys[1].last_used_at));

  const overview = (await gateway.admin("/admin/overview?period=hour")).json;
  expect(
    overview.stretches.reduce((sum: number, { requests }: { requests: number }) => sum + requests, 0),
  ).toBe(3);
  expect(overview.stretches[0].first_token_ms.p50).toBeNumber();
  await gateway.close();
});
