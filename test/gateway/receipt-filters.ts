import { expect } from "bun:test";
import { until } from "../fakes/until.ts";
import type { OpenGateway } from "./open.ts";

type Ids = readonly string[];

/** What owners and the operator find receipts by, on a gateway whose configuration is the default one. */
export async function findsReceipts(gateway: OpenGateway): Promise<void> {
  const [mine, theirs] = [await gateway.key(5), await gateway.key(5)];
  const chat = async (key: string, model: string) =>
    (await gateway.chat(key, { model })).headers.get("x-gateway-receipt")!;
  const paid = await chat(mine.key, "sim/echo");
  const between = new Date().toISOString();
  const free = await chat(mine.key, "sim/echo:free");
  const other = await chat(theirs.key, "sim/echo");
  const listed = async (path: string, query: string, bearer?: string): Promise<Ids> => {
    const { json, text } =
      bearer === undefined
        ? await gateway.admin(`${path}?${query}`)
        : await gateway.send("GET", `${path}?${query}`, { bearer });
    if (json.data === undefined) throw new Error(text);
    return json.data.map(({ id }: { id: string }) => id);
  };
  const time = encodeURIComponent(between);
  await until(async () => (await listed("/admin/receipts", "")).length === 3);
  const cases: [query: string, found: Ids][] = [
    ["", [free, paid]],
    [`until=${time}`, [paid]],
    [`since=${time}`, [free]],
    ["host=sim", [free, paid]],
    ["host=none", []],
    ["min_cost_usd=0.000000001", [paid]],
    ["error=upstream_error", []],
    ["state=settled&model=sim/echo:free", [free]],
  ];
  for (const [query, found] of cases) {
    expect([query, ...(await listed("/v1/receipts", query, mine.recovery_secret))]).toEqual([
      query,
      ...found,
    ]);
    expect([query, ...(await listed(`/admin/balances/${mine.balance_id}/receipts`, query))]).toEqual([
      query,
      ...found,
    ]);
    expect([query, ...(await listed("/admin/receipts", `${query}&balance_id=${mine.balance_id}`))]).toEqual([
      query,
      ...found,
    ]);
  }
  expect(await listed("/admin/receipts", "")).toEqual([other, free, paid]);
  expect(await listed("/admin/receipts", `limit=1&before=${other}`)).toEqual([free]);
  const wrong = ["since=yesterday", "min_cost_usd=-1", "min_cost_usd=many", "error=none", "before=rcpt_none"];
  for (const query of wrong) {
    const { status, json } = await gateway.admin(`/admin/receipts?${query}`);
    expect([query, status, json.error.param]).toEqual([query, 400, query.split("=")[0]]);
  }
}
