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
};

describe("on SQLite", () => tests(async () => ""));
describeOnPostgres("on PostgreSQL", (cluster) => tests(async () => `store: ${await cluster.database()}\n`));
