import { describe, expect, test } from "bun:test";
import { describeOnPostgres } from "../postgres/fixture.ts";
import { ADMIN } from "../process/gateway.ts";
import { open } from "./open.ts";

const FOUND: readonly (readonly [query: string, names: readonly string[]])[] = [
  ["", ["100%_sure", "Billing", "agent-2", "agent-1", "first"]],
  ["search=AGENT", ["agent-2", "agent-1"]],
  ["search=or-live-", ["100%_sure", "Billing", "agent-2", "agent-1", "first"]],
  ["search=billing&state=ended", []],
  ["state=ended", ["old"]],
  ["state=active&search=old", []],
  ["search=%25_", ["100%_sure"]],
  ["search=g_n", []],
  ["search=nobody", []],
];

const REFUSED: readonly (readonly [query: string, param: string])[] = [
  ["state=gone", "state"],
  ["ids=a%20b", "ids"],
  [`ids=${Array(101).fill("key_1")}`, "ids"],
  [`search=${"a".repeat(101)}`, "search"],
  ["before=key_nobody", "before"],
  ["sort=name", "sort"],
  ["period=year", "period"],
];

const tests = (store: () => Promise<string>) => {
  test("keys are found by name, beginning, id and state, page by page, and only one's own", async () => {
    const gateway = await open(await store());
    const { recovery_secret: bearer, balance_id, id: first } = await gateway.key(1, { name: "first" });
    const other = await gateway.key(1, { name: "agent-1" });
    const ids: Record<string, string> = { first };
    for (const name of ["agent-1", "agent-2", "old", "Billing", "100%_sure"])
      ids[name] = (await gateway.send("POST", "/v1/keys", { bearer, json: { name } })).json.id;
    await gateway.send("DELETE", `/v1/keys/${ids.old}`, { bearer });
    const names = async (path: string, as = bearer) => {
      const { json } = await gateway.send("GET", path, { bearer: as });
      return json.data.map(({ name }: { name: string }) => name);
    };
    for (const [query, expected] of FOUND) {
      const active = query.includes("state=") ? query : `state=active&${query}`;
      const both = [
        await names(`/v1/keys?${active}`),
        await names(`/admin/balances/${balance_id}/keys?${active}`, ADMIN),
      ];
      expect([query, ...both.map((one) => one.toSorted())]).toEqual([
        query,
        expected.toSorted(),
        expected.toSorted(),
      ]);
    }
    const pages: string[] = [];
    for (let before = "", more = true; more; ) {
      const path = `/v1/keys?search=agent&limit=1${before}`;
      const { data, has_more } = (await gateway.send("GET", path, { bearer })).json;
      pages.push(data[0].name);
      [before, more] = [`&before=${data[0].id}`, has_more];
    }
    expect(pages.toSorted()).toEqual(["agent-1", "agent-2"]);
    expect(await names(`/v1/keys?ids=${ids.old},${other.id},${ids.first}`)).toEqual(
      expect.arrayContaining(["old", "first"]),
    );
    expect(await names(`/v1/keys?ids=${other.id}`)).toEqual([]);
    expect(await names(`/v1/keys?search=${ids.Billing}`)).toEqual(["Billing"]);
    for (const [query, param] of REFUSED) {
      const { status, json } = await gateway.send("GET", `/v1/keys?${query}`, { bearer });
      expect([query, status, json.error?.param]).toEqual([query, 400, param]);
    }
    await gateway.close();
  }, 60_000);

  test("keys come with what they spent in a period and when they were last used, ordered by either, page by page", async () => {
    const gateway = await open(await store());
    const { recovery_secret: bearer, balance_id, id, key } = await gateway.key(1, { name: "first" });
    const named: Record<string, string> = { first: key };
    for (const name of ["twice", "revoked", "unused"]) {
      const made = (await gateway.send("POST", "/v1/keys", { bearer, json: { name } })).json;
      named[name] = made.key;
      named[`${name}'s id`] = made.id;
    }
    for (const name of ["revoked", "twice", "twice", "first"])
      await gateway.chat(named[name]!, { model: "sim/echo" });
    await gateway.send("DELETE", `/v1/keys/${named["revoked's id"]}`, { bearer });
    const list = async (path: string, as = bearer) => (await gateway.send("GET", path, { bearer: as })).json;
    const names = async (query: string) => {
      const own = await list(`/v1/keys?${query}`);
      const operators = await list(`/admin/balances/${balance_id}/keys?${query}`, ADMIN);
      expect(operators).toEqual(own);
      return own.data.map(({ name }: { name: string }) => name);
    };
    expect(await names("sort=used")).toEqual(["first", "twice", "revoked"]);
    expect((await names("sort=spend"))[0]).toBe("twice");
    expect(await names("sort=used&state=active")).toEqual(["first", "twice"]);
    expect(await names("sort=spend&search=TWI&period=hour")).toEqual(["twice"]);
    expect(await names(`sort=used&ids=${id}`)).toEqual(["first"]);
    const pages: string[] = [];
    for (let before = "", more = true; more; ) {
      const page = await list(`/v1/keys?sort=used&limit=1${before}`);
      pages.push(page.data[0].name);
      [before, more] = [`&before=${page.next_before}`, page.has_more];
      expect(page.next_before === null).toBe(!more);
    }
    expect(pages).toEqual(["first", "twice", "revoked"]);
    expect(await names(`sort=used&before=${named["unused's id"]}`)).toEqual([]);

    const { data } = await list("/v1/keys?period=day");
    const byName = Object.fromEntries(data.map((row: { name: string }) => [row.name, row]));
    expect(byName.unused).toMatchObject({ used_period_usd: 0, last_used_at: null });
    expect(byName.twice.used_period_usd).toBeCloseTo(2 * byName.first.used_period_usd);
    expect(byName.first.used_period_usd).toBe(byName.first.used_day_usd);
    expect(Date.parse(byName.first.last_used_at)).toBeGreaterThan(Date.parse(byName.first.created_at) - 1);
    const earlier = (await list("/v1/keys?period=yesterday&sort=spend")).data;
    expect(earlier.map((row: { used_period_usd: number }) => row.used_period_usd)).toEqual([0, 0, 0]);
    expect((await list("/v1/keys")).data[0]).not.toHaveProperty("used_period_usd");
    await gateway.close();
  }, 60_000);
};

describe("on SQLite", () => tests(async () => ""));
describeOnPostgres("on PostgreSQL", (cluster) => tests(async () => `store: ${await cluster.database()}\n`));
