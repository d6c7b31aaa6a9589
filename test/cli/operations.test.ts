import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "../process/gateway.ts";
import { gateway, type Run } from "./command.ts";

const folder = new Folder(
  `${simpleConfig([9]).replace("http://127.0.0.1:9/v1", "simulated").replace("bench-model", "echo")}
price_lists: { partner: [{ model: "*", factor: 0.9 }], special: [{ model: "*", factor: 0.8 }] }
`,
);
const running = await GatewayProcess.start(folder);
afterAll(async () => {
  await running.stop();
  folder.remove();
});

const operator = (...args: string[]): Promise<Run> =>
  gateway(args, { GATEWAY_URL: running.url, GATEWAY_ADMIN_TOKEN: ADMIN });
const json = async (...args: string[]) => {
  const { out, err, code } = await operator(...args, "--json");
  if (code !== 0) throw new Error(err);
  return JSON.parse(out);
};

describe("keys", () => {
  test("are created without an account; both secrets are shown once, and the key works", async () => {
    const { out, code } = await operator("keys", "create", "--name", "first", "--rpm-limit", "7");
    expect(code).toBe(0);
    const key = /or-live-[1-9A-Za-z]{32}/.exec(out)![0];
    expect(out).toMatch(/or-rec-[1-9A-Za-z]{44}/);
    expect(out).toContain("neither is shown again");
    const me = await running.get("/v1/me", key);
    expect(me.json.key).toMatchObject({ name: "first", rpm_limit: 7 });
  });

  test("are created by the operator where nobody gets one by asking", async () => {
    const config = readFileSync(join(folder.path, "gateway.yaml"), "utf8");
    folder.configure(config.replace("per_hour: 100000", "per_hour: 0"));
    await operator("reload");
    const created = await gateway(["keys", "create"], {
      GATEWAY_URL: running.url,
      GATEWAY_DATA: folder.path,
    });
    const made = await operator("keys", "create");
    folder.configure(config);
    await operator("reload");
    expect([created.code, created.err]).toEqual([3, expect.stringContaining("Ask its operator")]);
    expect([made.code, made.out]).toEqual([0, expect.stringContaining("or-live-")]);
  });

  test("are created on an owner's balance, with limits, and listed for owner and operator", async () => {
    const { recovery_secret, balance_id } = await running.keyWith(0);
    const env = { GATEWAY_URL: running.url, GATEWAY_OWNER: recovery_secret };
    const args =
      "keys create --json --daily-limit-usd 2.5 --allow-model test/model --allow-model test/other".split(" ");
    const made = JSON.parse((await gateway(args, env)).out);
    expect(made).toMatchObject({
      balance_id,
      daily_limit_usd: 2.5,
      allowed_models: ["test/model", "test/other"],
    });
    expect(made.recovery_secret).toBeUndefined();

    const ofOwner = JSON.parse((await gateway(["keys", "list", "--json"], env)).out);
    const ofOperator = await json("keys", "list", balance_id);
    expect(ofOwner.data.map(({ id }: { id: string }) => id).sort()).toEqual(
      ofOperator.data.map(({ id }: { id: string }) => id).sort(),
    );
    expect(ofOperator.data).toHaveLength(2);
  });

  test("get a policy, and lose it", async () => {
    const { balance_id } = await running.keyWith(0);
    const policy = { region: ["eu"], zdr: true };
    const made = await json("keys", "create", "--balance", balance_id, "--policy", JSON.stringify(policy));
    expect(made.policy).toEqual(policy);
    expect((await json("keys", "change", made.id, "--policy", "none")).policy).toBeNull();
    const wrong = await operator("keys", "change", made.id, "--policy", "eu");
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("It must be a JSON object.")]);
    const unknown = await operator("keys", "change", made.id, "--policy", '{"country":"fr"}');
    expect(unknown.err).toContain("`policy`");
  });

  test("are listed over many pages, up to the limit that was asked for", async () => {
    const { recovery_secret, balance_id } = await running.keyWith(0);
    for (let made = 0; made < 4; made++) await running.post("/v1/keys", {}, recovery_secret);
    expect((await json("keys", "list", balance_id)).data).toHaveLength(5);
    const some = await json("keys", "list", balance_id, "--limit", "3");
    expect([some.data.length, some.has_more]).toEqual([3, true]);
    expect((await operator("keys", "list", balance_id, "--limit", "3")).out).toContain("--limit above 3");
  });

  test("are shown and revoked by the operator; a revoked one is refused on its next request", async () => {
    const { id, key } = await running.keyWith(0);
    expect((await operator("keys", "show", id)).out).toContain("active");
    const { out, code } = await operator("keys", "revoke", id);
    expect([code, out]).toEqual([0, `${id} is revoked: its next request is refused.\n`]);
    expect((await running.get("/v1/me", key)).status).toBe(401);
  });

  test("are named by themselves, too, wherever an id is, also once they are revoked", async () => {
    const { key, id, balance_id, recovery_secret } = await running.keyWith(0);
    const ownersEnv = { GATEWAY_URL: running.url, GATEWAY_OWNER: recovery_secret };
    expect((await json("keys", "show", key)).id).toBe(id);
    expect(JSON.parse((await gateway(["keys", "show", key, "--json"], ownersEnv)).out).id).toBe(id);
    expect((await json("keys", "change", key, "--rpm-limit", "9")).rpm_limit).toBe(9);
    expect((await json("keys", "list", key)).data).toMatchObject([{ id }]);
    expect(await json("credit", key, "3")).toMatchObject({ balance_id });
    expect((await json("suspend", key, "--reason", "sanctions")).balance_ids).toEqual([balance_id]);
    expect((await json("unsuspend", key)).suspended).toBeNull();
    expect((await json("usage", key)).data).toEqual([]);
    expect((await json("keys", "revoke", key)).id).toBe(id);
    expect((await json("keys", "show", key)).state).toBe("revoked");
  });

  test("that are made for a customer by the operator are on the customer's balance", async () => {
    const { balance_id, id } = await running.keyWith(0);
    const made = await json("keys", "create", "--balance", id, "--name", "second", "--rpm-limit", "5");
    expect(made).toMatchObject({ balance_id, name: "second", rpm_limit: 5 });
    expect((await running.get("/v1/me", made.key)).json.key.id).toBe(made.id);
    expect((await json("keys", "list", balance_id)).data).toHaveLength(2);
  });

  const secret = `or-live-${"x".repeat(32)}`;
  const naming: string[][] = [
    ["keys", "show", secret],
    ["keys", "revoke", secret],
    ["keys", "show", `or-rec-${"x".repeat(44)}`],
    ["credit", secret, "1"],
    ["credit", `x${secret}`, "1"],
    ["receipt", secret],
    ["account", secret],
    ["nodes", "close", secret],
    ["suspend", secret, "--reason", secret],
    ["audit", secret],
    ["credit", "bal_1", secret],
    ["keys", "show", secret, "--json"],
    ["payments", "refund", secret],
    ["audit", "--url", secret],
  ];
  test.each(naming)("that are not known, or misplaced, are not repeated: %s %s", async (...args) => {
    const { code, err, out } = await operator(...args);
    expect(code).toBeGreaterThan(1);
    expect(`${err}${out}`).not.toContain("xxxxx");
  });

  test("whose limits are changed by the operator keep what was not named; none lifts a limit", async () => {
    const { id, key } = await running.keyWith(0);
    const { code } = await operator("keys", "change", id, "--daily-limit-usd", "80", "--rpm-limit", "none");
    expect(code).toBe(0);
    expect((await running.get("/v1/me", key)).json.key).toMatchObject({
      daily_limit_usd: 80,
      rpm_limit: null,
      tpm_limit: 400_000,
    });
  });

  test("whose name holds a terminal's control characters cannot act on the operator's terminal", async () => {
    const { balance_id, recovery_secret } = await running.keyWith(0);
    await running.post("/v1/keys", { name: "\u001b[2Jx\r\u202e" }, recovery_secret);
    const { out } = await operator("keys", "list", balance_id);
    expect(out).toContain("\uFFFD[2Jx");
    expect(out).not.toMatch(/[\u001b\r\u202e]/);
  });
});

describe("credit", () => {
  test("is added to a balance, or to the balance of a key, and once for each idempotency key", async () => {
    const { id, key, balance_id } = await running.keyWith(0);
    expect((await operator("credit", balance_id, "10.25", "--note", "invoice 7")).code).toBe(0);
    for (let round = 0; round < 2; round++) await json("credit", id, "1", "--idempotency-key", `once ${id}`);
    expect((await running.get("/v1/me", key)).json.balance_usd).toBe(11.25);
    const listed = (await json("balances")).data.find((row: { id: string }) => row.id === balance_id);
    expect(listed).toMatchObject({ balance_usd: 11.25, live_keys: 1, suspended: null });
  });

  test("is taken back from a balance, an amount or all that is left, and once for each idempotency key", async () => {
    const { id, key, balance_id } = await running.keyWith(10);
    const { code, out } = await operator("debit", balance_id, "2.25", "--note", "twice credited");
    expect([code, out.split(" at ")[0]]).toEqual([0, `2.25 USD were taken back from ${balance_id}`]);
    for (let round = 0; round < 2; round++) {
      expect(await json("debit", id, "all", "--idempotency-key", `refund ${id}`)).toMatchObject({
        amount_usd: 7.75,
      });
    }
    expect((await running.get("/v1/me", key)).json.balance_usd).toBe(0);
    const refused = await operator("debit", balance_id, "1");
    expect(refused.code).not.toBe(0);
    expect(refused.err).toContain(`0 USD of ${balance_id} is available now`);
    expect((await operator("debit", balance_id, "-1")).code).toBe(2);
  });

  test("that is nearly or wholly used up is found, and a balance that never had any is not", async () => {
    const empty = await running.keyWith(1);
    const body = { model: "test/model", max_tokens: 10, messages: [{ role: "user", content: "Hello" }] };
    expect((await running.post("/v1/chat/completions", body, empty.key)).status).toBe(200);
    await json("debit", empty.balance_id, "all");
    const low = await running.keyWith(0.75);
    const high = await running.keyWith(9);
    const never = await running.keyWith(0);
    const { data } = await json("balances", "--below", "1");
    const ids = data.map(({ id }: { id: string }) => id);
    expect(ids).toContain(low.balance_id);
    expect(ids).toContain(empty.balance_id);
    expect(ids).not.toContain(high.balance_id);
    expect(ids).not.toContain(never.balance_id);
  });

  test("that reached nobody is not said to be in doubt", async () => {
    const run = await gateway(["credit", "bal_x", "5"], {
      GATEWAY_URL: "http://127.0.0.1:1",
      GATEWAY_ADMIN_TOKEN: ADMIN,
    });
    expect(run.code).toBe(4);
    expect(run.err).toContain("Check that the gateway runs there");
    expect(run.err).not.toContain("idempotency");
  });

  test("that may have been lost on the way says how to repeat it safely", async () => {
    const deaf = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { data: (socket) => void socket.end() },
    });
    const lost = { GATEWAY_URL: `http://127.0.0.1:${deaf.port}`, GATEWAY_ADMIN_TOKEN: ADMIN };
    const run = await gateway(["credit", "bal_x", "5"], lost);
    expect(run.code).toBe(4);
    expect(run.err).toMatch(/gateway credit bal_x 5 --idempotency-key [0-9a-f-]{36}/);
    const back = await gateway(["debit", "bal_x", "all"], lost);
    deaf.stop(true);
    const failing = Bun.serve({
      port: 0,
      fetch: () =>
        Response.json({ error: { message: "Retry in 5 s.", code: "internal_error" } }, { status: 500 }),
    });
    const failed = await gateway(["debit", "bal_x", "5"], {
      GATEWAY_URL: failing.url.origin,
      GATEWAY_ADMIN_TOKEN: ADMIN,
    });
    await failing.stop(true);
    expect([failed.code, failed.err]).toEqual([
      3,
      expect.stringMatching(/Retry in 5 s[\s\S]*gateway debit bal_x 5 --idempotency-key [0-9a-f-]{36}/),
    ]);
    expect(back.err).toMatch(/gateway debit bal_x all --idempotency-key [0-9a-f-]{36}/);
  });
});

test("a suspended balance is refused and says why, until the suspension is lifted", async () => {
  const { key, balance_id } = await running.keyWith(1);
  const chat = { model: "test/model", messages: [{ role: "user", content: "Hi" }], max_tokens: 1 };
  const why = ["--by", "Ada", "--note", "case 12"];
  expect((await operator("suspend", balance_id, "--reason", "chargeback", ...why)).code).toBe(0);
  const refused = await running.post("/v1/chat/completions", chat, key);
  expect([refused.status, refused.json.error.code]).toEqual([403, "account_suspended"]);
  expect((await operator("unsuspend", balance_id)).out).toContain("no longer suspended");
  const { json: kept } = await running.get(`/admin/accounts/${balance_id}/suspensions`, ADMIN);
  expect(kept.data).toMatchObject([
    { reason: null, by: "admin", note: null },
    { reason: "chargeback", by: "Ada", note: "case 12" },
  ]);
  expect((await running.post("/v1/chat/completions", chat, key)).status).not.toBe(403);
});

test("a balance is charged by a price list, and a key by another or by none of its own", async () => {
  const { balance_id, id } = await running.keyWith(0);
  expect((await json("price-list", id, "partner")).price_list).toBe("partner");
  expect((await json("keys", "change", id, "--price-list", "special")).price_list).toBe("special");
  expect((await json("keys", "change", id, "--price-list", "none")).price_list).toBe(null);
  expect((await operator("balances")).out).toContain("partner");
  const unknown = await operator("price-list", balance_id, "nope");
  expect(unknown.code).not.toBe(0);
  expect(unknown.err).toContain("It has: partner, special.");
  expect((await operator("price-list", balance_id, "none")).out).toContain("the models' own prices");
});

test("an audit shows sums to the nano-dollar and ends well where the books add up", async () => {
  const { balance_id } = await running.keyWith(0);
  await operator("credit", balance_id, "0.000000001");
  const { out, code } = await operator("audit");
  expect(code).toBe(0);
  expect(out).toMatch(/credits {6}\d+\.\d{6}\d*1 USD/);
  expect((await json("audit")).ok).toBe(true);
});

test("an audit of books that do not add up names the account, and fails", async () => {
  const own = new Folder(simpleConfig([9]));
  const honest = await GatewayProcess.start(own);
  const { balance_id } = await honest.keyWith(5);
  await honest.stop();
  const db = new Database(join(own.env.GATEWAY_DATA!, "gateway.sqlite"));
  db.run("UPDATE counters SET credited = credited + 1500000000 WHERE id = ?", [`balance:${balance_id}`]);
  db.close();

  const tampered = await GatewayProcess.start(own);
  const run = await gateway(["audit"], { GATEWAY_URL: tampered.url, GATEWAY_ADMIN_TOKEN: ADMIN });
  await tampered.stop();
  own.remove();
  expect(run.code).toBe(1);
  expect(run.out).toContain(`balance:${balance_id} is off by 1.50 USD`);
  expect(run.err).toContain("the books are off by 1.50 USD in 1 account");
});

test("an audit derives each charge again from its receipt's tokens and rates, and names one that differs", async () => {
  const own = new Folder(simpleConfig([9]));
  const honest = await GatewayProcess.start(own);
  const { key } = await honest.keyWith(5);
  const asks = { model: "test/model", messages: [{ role: "user", content: "one" }] };
  const replies = [];
  for (const stream of [false, true])
    replies.push(await honest.post("/v1/chat/completions", { ...asks, stream }, key));
  const audited = (url: string) =>
    gateway(["audit", "--charges"], { GATEWAY_URL: url, GATEWAY_ADMIN_TOKEN: ADMIN });
  const clean = await audited(honest.url);
  await honest.stop();
  expect(clean).toMatchObject({ code: 0, err: "" });
  expect(clean.out).toContain("charges of 2 receipts, recomputed from tokens and rates: all equal");

  const receipt = replies[0]!.headers.get("x-gateway-receipt")!;
  const db = new Database(join(own.env.GATEWAY_DATA!, "gateway.sqlite"));
  const { changes } = db.run(
    "UPDATE ends SET body = json_set(body, '$.tokens.output', 1 + json_extract(body, '$.tokens.output')) WHERE receipt = ?",
    [receipt],
  );
  db.close();
  expect(changes).toBe(1);
  const tampered = await GatewayProcess.start(own);
  const found = await audited(tampered.url);
  await tampered.stop();
  own.remove();
  expect(found.code).toBe(1);
  expect(found.out).toContain(`${receipt} charged `);
  expect(found.err).toContain("1 receipt charged something else than tokens at rates");
});

describe("what was used", () => {
  const chat = (key: string, content: string) =>
    running.post("/v1/chat/completions", { model: "test/model", messages: [{ role: "user", content }] }, key);

  test("learns of one request by its receipt, and added up for bills to the nano-dollar", async () => {
    const { id, key, balance_id } = await running.keyWith(5);
    const [first, second] = [await chat(key, "one"), await chat(key, "one and two")];
    const receipt = await json("receipt", first.headers.get("x-gateway-receipt")!);
    expect(receipt).toMatchObject({ key_id: id, balance_id, state: "settled", model: "test/model" });
    const spent = 5 - (await running.get("/v1/me", key)).json.balance_usd;

    const used = await json("usage", balance_id);
    const input = first.json.usage.prompt_tokens + second.json.usage.prompt_tokens;
    expect(used.data).toEqual([
      expect.objectContaining({ balance_id, key_id: id, model: "test/model", requests: 2, input }),
    ]);
    expect(Number(used.data[0].cost_usd)).toBeCloseTo(spent, 9);
    const margins = await json("margins", "--by", "balance", "--period", "day");
    const own = expect.objectContaining({ balance: balance_id, requests: 2, host_cost_usd: 0 });
    expect(margins.data).toContainEqual(own);
    expect(margins.data.at(-1)).toMatchObject({ balance: "all" });
    const { out } = await operator("usage", "--csv");
    expect(out).toStartWith(
      "balance_id,email,wallet,key_id,key_name,model,requests,failed,input,cache_read,cache_write,output,cost_usd\n",
    );
    expect(out).toContain(`\n${balance_id},,,${id},,test/model,2,0,${input},0,0,`);
    await fetch(`${running.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "x-gateway-tags": "customer==acme",
      },
      body: JSON.stringify({ model: "test/model", messages: [{ role: "user", content: "one" }] }),
    });
    const byTag = (await operator("usage", balance_id, "--tag", "customer", "--csv")).out;
    expect(byTag).toContain(",model,tag,requests,");
    expect(byTag).toContain(`\n${balance_id},,,${id},,test/model,,2,0,${input},`);
    // A value that a spreadsheet would take for a formula.
    expect(byTag).toContain(`\n${balance_id},,,${id},,test/model,'=acme,1,0,`);
    expect((await json("usage", balance_id, "--since", "2020-01-01", "--until", "2020-02-01")).data).toEqual(
      [],
    );
  });

  const receiptAt = (created_at: string, state = "settled") => ({
    id: `rcpt_${created_at}`,
    created_at,
    state,
    balance_id: "bal_1",
    key_id: "key_1",
    model: null,
    model_requested: "a/b",
    tokens: { input: 1, cache_read: 0, cache_write: 0, output: 2 },
    cost_usd: 0.1,
  });

  test("counts what began in the period, also where it stands behind what a later start recovered, with whose it is", async () => {
    const pages = [
      [receiptAt("2030-03-01T00:00:00Z"), receiptAt("2029-12-01T10:00:00Z", "recovered")],
      [],
      [receiptAt("2030-02-28T23:59:59Z"), receiptAt("2030-01-31T23:59:00Z")],
      [
        receiptAt("2030-02-01T00:00:00Z"),
        receiptAt("2030-01-30T23:59:59Z"),
        receiptAt("2030-02-02T00:00:00Z"),
      ],
    ];
    using server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request) {
        const { pathname, searchParams } = new URL(request.url);
        if (pathname === "/admin/balances/bal_1") {
          return Response.json({ id: "bal_1", email: "kim@example.com", wallet: null });
        }
        if (pathname === "/admin/balances/bal_1/keys") {
          const data = [{ id: "key_0" }, { id: "key_1", name: "=nightly, report" }];
          return Response.json({ object: "list", data, has_more: false });
        }
        const page = Number(searchParams.get("before") ?? 0);
        const has_more = page + 1 < pages.length;
        return Response.json({
          object: "list",
          data: pages[page],
          has_more,
          next_before: has_more ? `${page + 1}` : null,
        });
      },
    });
    const outputOf = (as: string) =>
      gateway(["usage", "bal_1", "--since", "2030-02-01", "--until", "2030-03-01T00:00:00Z", as], {
        GATEWAY_URL: server.url.origin,
        GATEWAY_ADMIN_TOKEN: ADMIN,
      });
    const { out, err } = await outputOf("--json");
    expect(err).toBe("");
    const people = { email: "kim@example.com", wallet: null, key_name: "=nightly, report" };
    expect(JSON.parse(out).data).toEqual([
      expect.objectContaining({ ...people, model: "a/b", requests: 2, input: 2, output: 4, cost_usd: "0.2" }),
    ]);
    // A name that a spreadsheet would take for a formula, in the operator's bill.
    expect((await outputOf("--csv")).out).toEndWith(
      `\nbal_1,kim@example.com,,key_1,"'=nightly, report",a/b,2,0,2,0,0,4,0.2\n`,
    );
  });
});

test("a configuration is read again on the operator's word: what only a start reads is named, and a bad file refused with its mistake", async () => {
  expect((await operator("reload")).out).toContain("in force");
  const good = readFileSync(join(folder.path, "gateway.yaml"), "utf8");
  folder.configure(`${good}\nworkers: 2\ndurability: relaxed\nmetrics: 127.0.0.1:9090\n`);
  expect((await json("reload")).needs_restart).toEqual(["durability", "metrics", "workers"]);
  expect((await operator("reload")).out).toContain("`workers` was changed, and needs a restart");
  folder.configure(`${good}\nrouteing: {}\nmodel: []\n`);
  const { code, err } = await operator("reload");
  folder.configure(good);
  expect(code).toBe(3);
  expect(err).toMatch(/\S+:\d+:1: routeing: .*\n\S+:\d+:1: model: /);
});

test("hosts are shown as the gateway sees them", async () => {
  expect(await json("hosts")).toMatchObject([{ id: "h0", state: "available", has_api_key: false }]);
});

const ROUTE = { host_model: "m", usable: true, resting_workers: 0, served: 5, failed: 0, last_failure: null };
const FAILURE = { at: "2026-11-21T22:34:12.000Z", detail: "status 401: invalid_api_key\u001b[2J" };
const IDLE = {
  id: "idle",
  state: "available",
  max_concurrent: null,
  limit: null,
  cut_workers: 0,
  in_flight: 0,
  waiting: 0,
  routes: [ROUTE],
  speaks: ["messages"],
  has_api_key: true,
  keys: [],
  base_url: "https://idle.example/v1",
};

test("what a host has to do, what it is given, which of its routes rest and why its models failed is shown", async () => {
  const data = [
    IDLE,
    { ...IDLE, id: "free", limit: 10_000, in_flight: 3 },
    { ...IDLE, id: "bounded", max_concurrent: 40, limit: 40, in_flight: 40, waiting: 7 },
    { ...IDLE, id: "cut", max_concurrent: 40, limit: 21, cut_workers: 1, in_flight: 2 },
    {
      ...IDLE,
      id: "resting",
      routes: [
        ROUTE,
        { ...ROUTE, host_model: "n", resting_workers: 1, failed: 3, last_failure: FAILURE },
        { ...ROUTE, host_model: "n", usable: false, resting_workers: 2, failed: 3, last_failure: FAILURE },
      ],
    },
  ];
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => Response.json({ object: "list", data }),
  });
  const { out } = await gateway(["hosts"], { GATEWAY_URL: server.url.origin, GATEWAY_ADMIN_TOKEN: ADMIN });
  const rows = out
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/ {2,}/).slice(0, 6));
  expect(rows).toEqual([
    ["host", "state", "in flight", "limit", "waiting", "routes"],
    ["idle", "available", "0", "no limit", "0", "1"],
    ["free", "available", "3", "no limit", "0", "1"],
    ["bounded", "available", "40", "40", "7", "1"],
    ["cut", "available", "2", "21, overloaded lately", "0", "1"],
    ["resting", "available", "0", "no limit", "0", "1 of 3"],
    ["resting, n: 3 of 8 failed, last at 2026-11-21T22:34:12.000Z: status 401: invalid_api_key\uFFFD[2J"],
  ]);
});

test("which keys of a host are usable, and why others are not, is shown", async () => {
  const key = (name: string, state: string, refused: object | null = null) => ({
    name,
    state,
    in_flight: 0,
    refused,
  });
  const keys = [key("A", "usable"), key("B", "resting"), key("/run/c", "retired", FAILURE)];
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => Response.json({ object: "list", data: [{ ...IDLE, keys }] }),
  });
  const { out } = await gateway(["hosts"], { GATEWAY_URL: server.url.origin, GATEWAY_ADMIN_TOKEN: ADMIN });
  expect(out).toContain("1 of 3 usable");
  expect(out).toContain("idle, key B: resting, at a limit of the host");
  expect(out).toContain("idle, key /run/c: refused by the host at 2026-11-21T22:34:12.000Z: status 401");
});

describe("what goes wrong is reported with the next step, and by the exit code", () => {
  const wrong: [string, string[], Record<string, string>, number, string][] = [
    ["a word that is no command", ["kees"], {}, 2, "Did you mean keys?"],
    ["an option that is none", ["audit", "--jsn"], {}, 2, "--json"],
    ["a change that names nothing", ["keys", "change", "key_x"], {}, 2, "--daily-limit-usd"],
    ["a time that is none", ["usage", "--since", "yesterday"], {}, 2, "2030-01-31"],
    ["a day that no month has", ["usage", "--since", "2026-02-30"], {}, 2, "2030-01-31"],
    ["a time without its zone", ["usage", "--since", "2030-01-31T10:00"], {}, 2, "2030-01-31"],
    [
      "an end before the beginning",
      ["usage", "--until", "2030-01-01", "--since", "2030-01-02"],
      {},
      2,
      "--since",
    ],
    ["a receipt that is not there", ["receipt", "rcpt_none"], {}, 3, "There is no receipt `rcpt_none`"],
    ["a missing argument", ["keys", "show"], {}, 2, "missing required argument"],
    ["an amount with too many decimals", ["credit", "bal_x", "1.0000000001"], {}, 2, "nine decimals"],
    ["an amount below nothing", ["credit", "--", "bal_x", "-1"], {}, 2, "nine decimals"],
    ["a target that is neither", ["credit", "acct_x", "1"], {}, 2, "bal_"],
    ["a reason that is none", ["suspend", "bal_x", "--reason", "dislike"], {}, 2, "chargeback"],
    ["a suspension without a reason", ["suspend", "bal_x"], {}, 2, "--reason"],
    [
      "a balance that is not there",
      ["keys", "list", "bal_none"],
      {},
      3,
      "There is no balance `bal_none`. GET /admin/balances lists them.",
    ],
    ["a catalog that needs a key", ["models", "list"], {}, 3, "GATEWAY_OWNER"],
    ["a key that is not there", ["keys", "show", "key_none"], {}, 3, "There is no key `key_none`"],
    ["a token that is refused", ["audit"], { GATEWAY_ADMIN_TOKEN: "or-admin-other" }, 3, "admin-token"],
    ["an address that is none", ["audit"], { GATEWAY_URL: "gateway:80" }, 2, "--url"],
    [
      "nobody at the address",
      ["audit"],
      { GATEWAY_URL: "http://127.0.0.1:1" },
      4,
      "no answer from http://127.0.0.1:1",
    ],
    ["another machine, in the clear", ["audit"], { GATEWAY_URL: "http://192.0.2.1:1" }, 2, "--allow-http"],
  ];
  test.each(wrong)("%s", async (_, args, env, code, message) => {
    const run = await gateway(args, { GATEWAY_URL: running.url, GATEWAY_ADMIN_TOKEN: ADMIN, ...env });
    expect(run.err).toContain(message);
    expect([run.code, run.out]).toEqual([code, ""]);
  });

  test("a refused command names no receipt, because there is none to be shown", async () => {
    const { err } = await operator("keys", "show", "key_none");
    expect(err).toContain("The gateway answered 400.");
    expect(err).not.toContain("rcpt_");
  });

  test("as JSON where JSON was asked for", async () => {
    const { err, code, out } = await operator("keys", "show", "key_none", "--json");
    expect([code, out]).toEqual([3, ""]);
    expect(JSON.parse(err).error).toMatchObject({
      exit_code: 3,
      message: expect.stringContaining("key_none"),
    });
  });

  test("no token anywhere: the places that were looked at", async () => {
    const empty = mkdtempSync(join(tmpdir(), "cli-"));
    const { err, code } = await gateway(["audit"], { GATEWAY_URL: running.url }, empty);
    rmSync(empty, { recursive: true });
    expect(code).toBe(2);
    expect(err).toContain("GATEWAY_ADMIN_TOKEN");
    expect(err).toContain(join(empty, "data", "admin-token"));
  });
});

test("an account is shown by its id and its mail address, with its balances", async () => {
  const { err, code } = await operator("account", "nobody@example.com");
  expect([code, err]).toEqual([3, expect.stringContaining("no account has signed in as nobody@example.com")]);
});

test("budgets are listed and changed, by the operator and by the owner", async () => {
  const { balance_id, recovery_secret } = await running.keyWith(0);
  await running.post("/v1/budgets", { name: "team", cap_usd: 5, window: "day" }, recovery_secret);
  const ownersEnv = { GATEWAY_URL: running.url, GATEWAY_OWNER: recovery_secret };
  expect((await json("budgets", "list", balance_id)).data).toMatchObject([{ name: "team", cap_usd: 5 }]);
  await json("budgets", "change", "team", "--balance", balance_id, "--cap-usd", "7");
  const changed = await gateway(["budgets", "change", "team", "--window", "week", "--json"], ownersEnv);
  expect(JSON.parse(changed.out)).toMatchObject({ cap_usd: 7, window: "week" });
  expect((await operator("budgets", "change", "team", "--balance", balance_id)).code).toBe(2);
  expect((await operator("budgets", "list")).code).toBe(2);
  // What an operator names goes into the path alone: headers cannot hold every name, and must not hold a key.
  expect((await operator("budgets", "list", "bal_…")).err).toContain("There is no balance `bal_…`");
});

test("an owner creates a budget that caps each value of a tag, and is shown what the values spent", async () => {
  const { recovery_secret } = await running.keyWith(0);
  const ownersEnv = { GATEWAY_URL: running.url, GATEWAY_OWNER: recovery_secret };
  const create = ["budgets", "create", "each", "--cap-usd", "1", "--window", "day", "--per", "tag:user"];
  const made = await gateway([...create, "--json"], ownersEnv);
  expect(JSON.parse(made.out)).toMatchObject({ name: "each", cap_usd: 1, window: "day", per: "tag:user" });
  const shown = await gateway(["budgets", "show", "each", "--json"], ownersEnv);
  expect(JSON.parse(shown.out)).toMatchObject({ per: "tag:user", values: [] });
  expect((await gateway(["budgets", "show", "each", "--value", "alice"], ownersEnv)).out).toContain(
    "tag:user",
  );
  expect((await operator(...create)).code).toBe(2);
});

test("nodes: without a shared database there are none", async () => {
  expect((await operator("nodes", "list")).out).toStartWith("No nodes:");
  expect(await operator("nodes", "close", "gone")).toMatchObject({ code: 3 });
});

test("payments: a gateway that takes none says so", async () => {
  const { code, err } = await operator("payments", "list");
  expect([code, err]).toEqual([3, expect.stringContaining("takes no payments")]);
});

test("the token is found in the data folder, and the port in the gateway's own variables", async () => {
  const own = new Folder(simpleConfig([9]));
  const { GATEWAY_ADMIN_TOKEN: _, ...env } = own.env;
  const second = await GatewayProcess.start(own, { GATEWAY_ADMIN_TOKEN: "" });
  const run = await gateway(["audit"], { ...env, PORT: new URL(second.url).port });
  await second.stop();
  own.remove();
  expect([run.err, run.code]).toEqual(["", 0]);
});

test("--version names the release, its schemas and Bun, for reports", async () => {
  const { out, code } = await operator("--version");
  expect([out, code]).toEqual([
    expect.stringMatching(
      /^\d+\.\d+\.\d+\+\S+ \(SQLite schema \d+, PostgreSQL schema \d+\) on Bun \d+\.\d+\.\d+\n$/,
    ),
    0,
  ]);
});
