import { afterAll, describe, expect, test } from "bun:test";
import { epochMs } from "../../src/units/clock.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { ADMIN_TOKEN, storedReceipt, TestGateway } from "./test-gateway.ts";

const gateway = new TestGateway();
afterAll(() => gateway.stop());

const admin = (method: string, path: string, body?: unknown) =>
  gateway.send(method, path, { bearer: ADMIN_TOKEN, ...(body === undefined ? {} : { body }) });

describe("the operator's list of balances", () => {
  test("shows what is on each and how many keys live, newest first, in pages", async () => {
    const [first, second] = [await gateway.setUp(), await gateway.setUp()];
    await gateway.send("POST", "/v1/keys", { bearer: second.recovery_secret });
    await gateway.send("DELETE", `/v1/keys/${second.id}`, { bearer: second.recovery_secret });
    await admin("POST", "/admin/credits", {
      balance_id: first.balance_id,
      amount_usd: 7.5,
      idempotency_key: "x",
    });

    const seen = [];
    let before = "";
    do {
      const { json } = await admin("GET", `/admin/balances?limit=1${before}`);
      seen.push(...json.data);
      before = `&before=${json.data[0].id}`;
      if (!json.has_more) break;
    } while (seen.length < 10);
    expect(seen.map(({ id }) => id).sort()).toEqual([first.balance_id, second.balance_id].sort());
    expect(seen.find(({ id }) => id === first.balance_id)).toMatchObject({
      object: "balance",
      account_id: null,
      suspended: null,
      balance_usd: 7.5,
      available_usd: 7.5,
      held_usd: 0,
      live_keys: 1,
    });
    expect(seen.find(({ id }) => id === second.balance_id)).toMatchObject({ balance_usd: 0, live_keys: 1 });
  });

  test("is filtered by what is left and by state, and its pages go on where the last one ended", async () => {
    const made: BalanceId[] = [];
    for (let usd = 0; usd < 12; usd++) {
      made.push((await gateway.setUp()).balance_id);
      gateway.fund(made[usd]!, usd);
    }
    await admin("POST", `/admin/accounts/${made[3]}/suspend`, { reason: "chargeback" });
    const all = async (query: string) => {
      const found: string[] = [];
      let before: string | null = null;
      do {
        const { json } = await admin(
          "GET",
          `/admin/balances?${query}${before === null ? "" : `&before=${before}`}`,
        );
        found.push(...json.data.map(({ id }: { id: string }) => id));
        before = json.next_before;
        expect(json.has_more).toBe(before !== null);
      } while (before !== null);
      return found.filter((id) => made.includes(id as BalanceId)).sort();
    };
    expect(await all("limit=5")).toEqual([...made].sort());
    // The first one has no credit, and never had: nothing ran out.
    expect(await all("below_usd=3&limit=1")).toEqual([made[1]!, made[2]!].sort());
    expect(await all("state=suspended")).toEqual([made[3]!]);
    expect(await all("state=accountless&below_usd=2.5")).toEqual([made[1]!, made[2]!].sort());
    expect(await all("state=closed")).toEqual([]);
  });

  test("shows the reason of a suspension", async () => {
    const { balance_id } = await gateway.setUp();
    await admin("POST", `/admin/accounts/${balance_id}/suspend`, { reason: "chargeback" });
    expect((await admin("GET", `/admin/balances/${balance_id}`)).json.suspended).toBe("chargeback");
    const forged = await admin("POST", `/admin/accounts/${balance_id}/unsuspend`, { by: "gateway" });
    expect([forged.status, forged.json.error.param]).toEqual([400, "by"]);
  });

  const wrong: [string, string][] = [
    ["/admin/balances?limit=0", "limit"],
    ["/admin/balances?limit=201", "limit"],
    ["/admin/balances?before=bal_none", "before"],
    ["/admin/balances/bal_none", "id"],
    ["/admin/balances/bal_none/keys", "id"],
    ["/admin/keys/key_none", "id"],
    ["/admin/balances/bal_none/receipts", "id"],
    ["/admin/receipts/rcpt_none", "id"],
  ];
  test.each(wrong)("%s is refused, naming %s", async (path, param) => {
    const { status, json } = await admin("GET", path);
    expect([status, json.error.code, json.error.param]).toEqual([400, "invalid_request", param]);
  });
});

describe("the operator's view of keys", () => {
  test("has limits and use, and neither secrets nor hashes", async () => {
    const { id, key, recovery_secret, balance_id } = await gateway.setUp();
    const { json, text } = await admin("GET", `/admin/balances/${balance_id}/keys`);
    expect(json).toMatchObject({
      object: "list",
      data: [{ id, balance_id, rpm_limit: 60, used_day_usd: 0.001, used_month_usd: 0.002 }],
      has_more: false,
    });
    expect((await admin("GET", `/admin/keys/${id}`)).json).toEqual(json.data[0]);
    for (const secret of [key, recovery_secret]) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(new Bun.CryptoHasher("sha256").update(secret).digest("hex"));
    }
  });

  test("a key of another balance is no place to go on from", async () => {
    const [mine, theirs] = [await gateway.setUp(), await gateway.setUp()];
    const { json } = await admin("GET", `/admin/balances/${mine.balance_id}/keys?before=${theirs.id}`);
    expect(json.error.param).toBe("before");
  });

  test("a key that the operator revokes stops on its next request", async () => {
    const { id, key } = await gateway.setUp();
    expect((await gateway.send("GET", "/v1/me", { bearer: key })).status).toBe(200);
    expect((await admin("POST", `/admin/keys/${id}/revoke`)).json).toEqual({ id, state: "revoked" });
    expect((await gateway.send("GET", "/v1/me", { bearer: key })).json.error.code).toBe("invalid_api_key");
  });

  test("a limit that the operator raises holds for the key's next request", async () => {
    const { id, key } = await gateway.setUp();
    const raised = { daily_limit_usd: 80, rpm_limit: null, allowed_models: ["test/one"] };
    expect((await admin("PATCH", `/admin/keys/${id}`, raised)).json).toMatchObject({ id, ...raised });
    expect((await gateway.send("GET", "/v1/me", { bearer: key })).json.key).toMatchObject(raised);
  });

  const wrong: [string, unknown, string][] = [
    ["a negative limit", { daily_limit_usd: -1 }, "daily_limit_usd"],
    ["a field that keys do not have", { max_budget: 5 }, "max_budget"],
    ["a budget that the balance does not have", { budget: "team" }, "budget"],
  ];
  test.each(wrong)("%s is refused and changes nothing", async (_, body, param) => {
    const { id } = await gateway.setUp();
    const { status, json } = await admin("PATCH", `/admin/keys/${id}`, body);
    expect([status, json.error.code, json.error.param]).toEqual([400, "invalid_request", param]);
    expect((await admin("GET", `/admin/keys/${id}`)).json.daily_limit_usd).toBe(5);
  });

  test("a key that was revoked is not changed", async () => {
    const { id } = await gateway.setUp();
    await admin("POST", `/admin/keys/${id}/revoke`);
    const { status, json } = await admin("PATCH", `/admin/keys/${id}`, { rpm_limit: 1 });
    expect([status, json.error.code]).toEqual([400, "invalid_request"]);
  });
});

describe("where nobody gets a key by asking", () => {
  test("the refusal names whom to contact, and the operator makes balances with their keys", async () => {
    const before = gateway.settings.accountlessKeysPerAddressPerHour;
    gateway.settings.accountlessKeysPerAddressPerHour = 0;
    const { status, json } = await gateway.send("POST", "/v1/keys");
    expect([status, json.error.code]).toEqual([400, "invalid_request"]);
    expect(json.error.message).toContain("Ask its operator");
    const made = await admin("POST", "/admin/keys", { name: "theirs", daily_limit_usd: 2 });
    gateway.settings.accountlessKeysPerAddressPerHour = before;
    expect(made.status).toBe(201);
    const owner = { bearer: made.json.recovery_secret };
    expect((await gateway.send("POST", "/v1/keys", owner)).status).toBe(201);
    const { key } = (await gateway.send("GET", "/v1/me", { bearer: made.json.key })).json;
    expect(key).toMatchObject({ name: "theirs", daily_limit_usd: 2, monthly_limit_usd: 50 });
  });
});

describe("the operator's view of receipts", () => {
  test("finds the receipt that a user reports, with whose it is", async () => {
    const { id, key, balance_id } = await gateway.setUp();
    gateway.receipts.push(storedReceipt("rcpt_reported", { id, balance_id }));
    const theirs = await gateway.send("GET", "/v1/receipts/rcpt_reported", { bearer: key });
    const { json } = await admin("GET", "/admin/receipts/rcpt_reported");
    expect(json).toEqual({ ...theirs.json, balance_id });
  });

  test("lists those of a balance in pages, of one key where that is asked", async () => {
    const [mine, theirs] = [await gateway.setUp(), await gateway.setUp()];
    const { balance_id, recovery_secret } = mine;
    const second = await gateway.send("POST", "/v1/keys", { bearer: recovery_secret });
    for (const number of [3, 2, 1]) gateway.receipts.push(storedReceipt(`rcpt_bill${number}`, mine));
    gateway.receipts.push(storedReceipt("rcpt_bill0", { id: second.json.id, balance_id }));
    const page = (query: string) => admin("GET", `/admin/balances/${balance_id}/receipts?${query}`);

    const first = await page("limit=2");
    expect(first.json).toMatchObject({
      data: [
        { id: "rcpt_bill3", balance_id },
        { id: "rcpt_bill2", balance_id },
      ],
      has_more: true,
      next_before: "rcpt_bill2",
    });
    const rest = await page("before=rcpt_bill2");
    expect(rest.json).toMatchObject({ data: [{ id: "rcpt_bill1" }, { id: "rcpt_bill0" }], has_more: false });
    const ofOne = await page(`key_id=${second.json.id}`);
    expect(ofOne.json.data.map(({ id }: { id: string }) => id)).toEqual(["rcpt_bill0"]);

    gateway.receipts.push(storedReceipt("rcpt_foreign", theirs));
    expect((await page("before=rcpt_foreign")).json.error.param).toBe("before");
    expect((await page("limit=201")).json.error.param).toBe("limit");
  });
});

test("the operator sees each host with its routes and whether they answer", async () => {
  const { json } = await admin("GET", "/admin/hosts");
  expect(json.data).toEqual([
    {
      id: "h",
      object: "host",
      base_url: "http://127.0.0.1:1/v1",
      speaks: ["chat.completions"],
      auth: "bearer",
      has_api_key: false,
      keys: [],
      state: "unused",
      failing_since: null,
      max_concurrent: null,
      limit: null,
      cut_workers: 0,
      in_flight: 0,
      waiting: 0,
      routes: ["test/one", "test/two"].map((model) => ({
        model,
        host_model: "m",
        priced: true,
        free: false,
        verified_free: false,
        usable: true,
        resting_workers: 0,
        unproven_workers: 0,
        served: 0,
        failed: 0,
        last_failure: null,
        first_token_ms: null,
        tokens_per_second: null,
      })),
    },
  ]);
});

const HOST_STATES: [known: { usable: number; resting: number; unproven: number }, state: string][] = [
  [{ usable: 2, resting: 0, unproven: 0 }, "available"],
  [{ usable: 2, resting: 0, unproven: 2 }, "unproven"],
  [{ usable: 1, resting: 1, unproven: 1 }, "unproven"],
  [{ usable: 0, resting: 2, unproven: 0 }, "resting"],
];

test.each(HOST_STATES)(
  "a host at whose routes %j is %s, and why it failed last is shown",
  async (known, state) => {
    const route = {
      ...known,
      host: "h",
      model: "m",
      free: false,
      verifiedFree: false,
      firstTokenMs: null,
      tokensPerSecond: null,
      served: 1,
      failed: 7,
      lastFailure: {
        at: epochMs(Date.UTC(2026, 10, 21)),
        since: epochMs(Date.UTC(2026, 10, 20)),
        detail: "status 401: invalid_api_key",
      },
    };
    gateway.routes = [route];
    const { json } = await admin("GET", "/admin/hosts");
    gateway.routes = [];
    expect(json.data[0].state).toBe(state);
    expect(json.data[0].failing_since).toBe(state === "available" ? null : "2026-11-20T00:00:00.000Z");
    expect(json.data[0].routes[0]).toMatchObject({
      served: 1,
      failed: 7,
      last_failure: {
        at: "2026-11-21T00:00:00.000Z",
        since: "2026-11-20T00:00:00.000Z",
        detail: "status 401: invalid_api_key",
      },
    });
  },
);

test("the configuration in force is answered as it was given", async () => {
  expect((await admin("GET", "/admin/config")).json).toEqual({
    file: "gateway.yaml",
    models: [],
    defaults: {},
  });
});
