import { afterAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { epochMs } from "../../src/units/clock.ts";
import { ERROR_CODES, ERRORS } from "../../src/units/errors/codes.ts";
import { causeOf, SUSPENSION_REASONS } from "../../src/units/errors/suspension.ts";
import { ADMIN_TOKEN, storedReceipt, TestGateway } from "./test-gateway.ts";

const gateway = new TestGateway();
afterAll(() => gateway.stop());

describe("GET /v1/me", () => {
  test("for a key: balance, limits, use, Open Tier, no account", async () => {
    const { id, key, balance_id } = await gateway.setUp();
    const { json } = await gateway.send("GET", "/v1/me", { bearer: key });
    expect(json).toMatchObject({
      balance_id,
      balance_usd: 0,
      available_usd: 0,
      held_usd: 0,
      suspended: null,
      key: { id, rpm_limit: 60, daily_limit_usd: 5, used_day_usd: 0.001, used_month_usd: 0.002 },
      open_tier: { limit: 20, used: 1 },
      contact: null,
      account: null,
      suspended_at: null,
      // A new key's, not this one's.
      key_defaults: { rpm_limit: 60, tpm_limit: 400_000, daily_limit_usd: 5, monthly_limit_usd: 50 },
    });
    expect(json.open_tier.resets_at).toEndWith("T00:00:00.000Z");
  });

  test("for the recovery secret: the balance, and no key", async () => {
    const { recovery_secret, balance_id } = await gateway.setUp();
    const { json } = await gateway.send("GET", "/v1/me", { bearer: recovery_secret });
    expect(json).toMatchObject({ balance_id, key: null });
  });
});

describe("budgets", () => {
  test("are seen and raised by the operator, of the balance that is named and of no other", async () => {
    const [mine, theirs] = [await gateway.setUp(), await gateway.setUp()];
    const body = { name: "team", cap_usd: 1, window: "day" };
    for (const { recovery_secret: bearer } of [mine, theirs]) {
      await gateway.send("POST", "/v1/budgets", { bearer, body });
    }
    const path = `/admin/balances/${mine.balance_id}/budgets`;
    const raised = await gateway.send("PATCH", `${path}/team`, {
      bearer: ADMIN_TOKEN,
      body: { cap_usd: 20 },
    });
    expect(raised.json).toMatchObject({ ...body, cap_usd: 20 });
    const { json } = await gateway.send("GET", path, { bearer: ADMIN_TOKEN });
    expect(json.data).toEqual([raised.json]);
    const other = await gateway.send("GET", "/v1/budgets/team", { bearer: theirs.recovery_secret });
    expect(other.json.cap_usd).toBe(1);
    const nowhere = await gateway.send("GET", "/admin/balances/bal_none/budgets", { bearer: ADMIN_TOKEN });
    expect(nowhere.json.error).toMatchObject({ code: "invalid_request", param: "id" });
  });

  test("are created, named by keys, changed, and dropped once no key draws from them", async () => {
    const { id, recovery_secret: bearer } = await gateway.setUp();
    const body = { name: "team", cap_usd: 12.5, window: "week" };
    const made = await gateway.send("POST", "/v1/budgets", { bearer, body });
    expect(made.json).toMatchObject({ ...body, used_usd: 0.003, held_usd: 0.004 });
    expect(new Date(made.json.resets_at).getUTCDay()).toBe(1);
    expect((await gateway.send("POST", "/v1/budgets", { bearer, body })).json.error.param).toBe("name");

    const drawing = await gateway.send("PATCH", `/v1/keys/${id}`, { bearer, body: { budget: "team" } });
    expect(drawing.json.budget).toBe("team");
    const inUse = await gateway.send("DELETE", "/v1/budgets/team", { bearer });
    expect(inUse.json.error).toMatchObject({ code: "invalid_request", param: "name" });

    const changed = await gateway.send("PATCH", "/v1/budgets/team", { bearer, body: { cap_usd: 3 } });
    expect(changed.json).toMatchObject({ id: made.json.id, cap_usd: 3, window: "week" });

    await gateway.send("PATCH", `/v1/keys/${id}`, { bearer, body: { budget: null } });
    expect((await gateway.send("DELETE", "/v1/budgets/team", { bearer })).json).toEqual({
      name: "team",
      deleted: true,
    });
    expect((await gateway.send("GET", "/v1/budgets", { bearer })).json.data).toEqual([]);
  });

  test("a key may draw from several, in its own order", async () => {
    const { id, recovery_secret: bearer } = await gateway.setUp();
    for (const name of ["a", "b"]) {
      await gateway.send("POST", "/v1/budgets", { bearer, body: { name, cap_usd: 1, window: "total" } });
    }
    const { json } = await gateway.send("PATCH", `/v1/keys/${id}`, {
      bearer,
      body: { budget: ["b", "a", "b"] },
    });
    expect(json.budget).toEqual(["b", "a"]);
  });

  const wrong: [unknown, string][] = [
    [{ cap_usd: 1, window: "day" }, "name"],
    [{ name: "a b", cap_usd: 1, window: "day" }, "name"],
    [{ name: "../x", cap_usd: 1, window: "day" }, "name"],
    [{ name: "x", window: "day" }, "cap_usd"],
    [{ name: "x", cap_usd: -1, window: "day" }, "cap_usd"],
    [{ name: "x", cap_usd: 1, window: "year" }, "window"],
    [{ name: "x", cap_usd: 1, window: "day", color: "red" }, "color"],
  ];
  test.each(wrong)("%p is refused", async (body, param) => {
    const { recovery_secret: bearer } = await gateway.setUp();
    const { status, json } = await gateway.send("POST", "/v1/budgets", { bearer, body });
    expect([status, json.error.code, json.error.param]).toEqual([400, "invalid_request", param]);
  });
});

describe("credit", () => {
  const credit = (body: object) => gateway.send("POST", "/admin/credits", { bearer: ADMIN_TOKEN, body });

  test("of a balance that is removed that moment names the balance", async () => {
    const { balance_id } = await gateway.setUp();
    const { credit: before } = gateway.deps.ledger;
    gateway.deps.ledger.credit = async () => {
      for (const table of ["keys", "balances"])
        gateway.db.run(`DELETE FROM ${table} WHERE ${table === "keys" ? "balance_id" : "id"} = ?`, [
          balance_id,
        ]);
      throw new Error("it does not exist");
    };
    const { status, json } = await credit({ balance_id, amount_usd: 1, idempotency_key: "gone" });
    gateway.deps.ledger.credit = before;
    expect([status, json.error.param]).toEqual([400, "balance_id"]);
  });

  test("is given once for each idempotency key, by balance or by key", async () => {
    const { id, key, balance_id } = await gateway.setUp();
    const body = { balance_id, amount_usd: 12.5, idempotency_key: "first", note: "invoice 7" };
    const [first, second] = [await credit(body), await credit(body)];
    expect(first.status).toBe(200);
    expect(second.text).toBe(first.text);
    expect((await credit({ key_id: id, amount_usd: 1, idempotency_key: "second" })).json.balance_id).toBe(
      balance_id,
    );
    expect((await gateway.send("GET", "/v1/me", { bearer: key })).json.balance_usd).toBe(13.5);
  });

  test("under a key that was used for another credit is refused", async () => {
    const { balance_id } = await gateway.setUp();
    await credit({ balance_id, amount_usd: 1, idempotency_key: "mine" });
    const { status, json } = await credit({ balance_id, amount_usd: 2, idempotency_key: "mine" });
    expect([status, json.error.param]).toEqual([400, "idempotency_key"]);
  });

  const wrong: [object, string][] = [
    [{ amount_usd: 1 }, "balance_id"],
    [{ balance_id: "bal_x", key_id: "key_x", amount_usd: 1 }, "balance_id"],
    [{ balance_id: "bal_x", amount_usd: 1 }, "balance_id"],
    [{ key_id: "key_x", amount_usd: 1 }, "key_id"],
    [{ balance_id: "bal_x", amount_usd: 0 }, "amount_usd"],
    [{ balance_id: "bal_x", amount_usd: -5 }, "amount_usd"],
    [{ balance_id: "bal_x", amount_usd: 1e10 }, "amount_usd"],
    [{ balance_id: "bal_x", amount_usd: 1, idempotency_key: "" }, "idempotency_key"],
    [{ balance_id: "bal_x", amount_usd: 1, idempotency_key: "payment:pay_1" }, "idempotency_key"],
  ];
  test.each(wrong)("%p is refused", async (body, param) => {
    const { status, json } = await credit({ idempotency_key: "k", ...body });
    expect([status, json.error.param]).toEqual([400, param]);
  });
});

describe("suspension", () => {
  test.each(SUSPENSION_REASONS)("for %s holds from the next request until it is lifted", async (reason) => {
    const { key, recovery_secret, balance_id } = await gateway.setUp();
    await gateway.send("GET", "/v1/me", { bearer: key });
    const path = `/admin/accounts/${balance_id}`;
    const done = await gateway.send("POST", `${path}/suspend`, { bearer: ADMIN_TOKEN, body: { reason } });
    expect(done.json).toEqual({ id: balance_id, suspended: reason, balance_ids: [balance_id] });

    expect((await gateway.send("GET", "/v1/me", { bearer: key })).json).toMatchObject({
      suspended: reason,
      suspended_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    });
    const holder = await gateway.deps.keyDeps.keyring.identify(key, gateway.deps.clock.now());
    expect(holder!.balance.suspended).toBe(reason as never);
    const create = await gateway.send("POST", "/v1/keys", { bearer: recovery_secret });
    expect([create.status, create.json.error.code]).toEqual([403, "account_suspended"]);
    expect(create.json.error.message).toContain(causeOf(reason));

    await gateway.send("POST", `${path}/unsuspend`, { bearer: ADMIN_TOKEN });
    expect((await gateway.send("POST", "/v1/keys", { bearer: recovery_secret })).status).toBe(201);
  });

  test("of nobody, or for no reason of the three, is refused", async () => {
    const suspend = (id: string, body: unknown) =>
      gateway.send("POST", `/admin/accounts/${id}/suspend`, { bearer: ADMIN_TOKEN, body });
    expect((await suspend("bal_none", { reason: "sanctions" })).json.error.param).toBe("id");
    expect((await suspend("bal_none", { reason: "dislike" })).json.error.param).toBe("reason");
    expect((await suspend("bal_none", undefined)).json.error.param).toBe("reason");
  });
});

test("the audit shows the invariant, and its drift", async () => {
  const { json } = await gateway.send("GET", "/admin/ledger/audit", { bearer: ADMIN_TOKEN });
  expect(json).toMatchObject({
    ok: true,
    drift_nano: "0",
    credits_nano: "10",
    available_nano: "5",
    drifts: [],
  });
});

test("a reload with a bad file names the problem and keeps the old one", async () => {
  expect((await gateway.send("POST", "/admin/reload", { bearer: ADMIN_TOKEN })).json).toEqual({
    reloaded: true,
    needs_restart: [],
  });
  gateway.reloadProblem = "gateway.yaml: `hosts` is missing";
  const { status, json } = await gateway.send("POST", "/admin/reload", { bearer: ADMIN_TOKEN });
  expect([status, json.error.code]).toEqual([400, "invalid_request"]);
  expect(json.error.message).toContain("`hosts` is missing");
});

test("receipts come in pages, newest first", async () => {
  const { id, key, balance_id, recovery_secret } = await gateway.setUp();
  for (const number of [3, 2, 1]) {
    gateway.receipts.push(storedReceipt(`rcpt_page${number}`, { id, balance_id }));
  }
  const page = await gateway.send("GET", "/v1/receipts?limit=2", { bearer: recovery_secret });
  expect(page.json).toMatchObject({ data: [{ id: "rcpt_page3" }, { id: "rcpt_page2" }], has_more: true });
  const rest = await gateway.send("GET", "/v1/receipts?limit=2&before=rcpt_page2", { bearer: key });
  expect(rest.json).toMatchObject({ data: [{ id: "rcpt_page1" }], has_more: false });
  for (const query of ["limit=0", "limit=x", "limit=101", "before=rcpt_other"]) {
    expect((await gateway.send("GET", `/v1/receipts?${query}`, { bearer: key })).json.error.param).toBe(
      query.split("=")[0],
    );
  }
});

test("a key lists by `key_id` the receipts of keys that it replaced, and is refused those of others", async () => {
  const { id, key, balance_id, recovery_secret } = await gateway.setUp();
  const rotated = (await gateway.send("POST", `/v1/keys/${id}/rotate`, { bearer: key })).json;
  const other = (await gateway.send("POST", "/v1/keys", { bearer: recovery_secret })).json;
  for (const { id: owner } of [{ id }, rotated, other])
    gateway.receipts.push(storedReceipt(`rcpt_of_${owner}`, { id: owner, balance_id }));
  const listed = async (bearer: string, keyId: string) => {
    const { json } = await gateway.send("GET", `/v1/receipts?key_id=${keyId}`, { bearer });
    return json.error?.param ?? json.data.map((receipt: { id: string }) => receipt.id);
  };
  for (const of of [rotated.id, id]) expect(await listed(rotated.key, of)).toEqual([`rcpt_of_${of}`]);
  for (const of of [other.id, "key_none"]) expect(await listed(rotated.key, of)).toBe("key_id");
  expect(await listed(recovery_secret, other.id)).toEqual([`rcpt_of_${other.id}`]);
});

test("a request for a receipt that is not there says for how long they are kept", async () => {
  const { key } = await gateway.setUp();
  const message = async (path: string) => {
    const { status, json } = await gateway.send("GET", path, { bearer: key });
    expect([status, json.error.code]).toEqual([400, "invalid_request"]);
    return json.error.message as string;
  };
  expect(await message("/v1/receipts/rcpt_gone")).not.toContain("kept");
  gateway.settings.receiptDays = 90;
  for (const path of ["/v1/receipts/rcpt_gone", "/v1/receipts?before=rcpt_gone"]) {
    expect(await message(path)).toContain("Receipts are kept for 90 days.");
  }
  gateway.settings.receiptDays = null;
});

describe("the catalog", () => {
  test("lists models with prices in USD per million tokens", async () => {
    const { key } = await gateway.setUp();
    const { json } = await gateway.send("GET", "/v1/catalog", { bearer: key });
    expect(json.object).toBe("list");
    expect(json.data[0]).toEqual({
      id: "test/one",
      name: "Model test/one",
      context_length: 1_000,
      max_output_tokens: 100,
      price: { input: 1, output: 2, cache_read: 1, cache_write: 1, cache_write_1h: 1 },
      input_modalities: ["text"],
      supported_parameters: ["temperature", "tools"],
      surfaces: ["chat.completions", "responses", "messages"],
      free: false,
      available: true,
    });
  });

  test("is read by OpenAI's client", async () => {
    const { key } = await gateway.setUp();
    const client = new OpenAI({ apiKey: key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
    const ids = [];
    for await (const model of client.models.list()) ids.push(`${model.object} ${model.id} ${model.owned_by}`);
    expect(ids).toEqual(["model test/one test", "model test/two test"]);
    expect((await client.models.retrieve("test/two")).id).toBe("test/two");
    const missing = await client.models.retrieve("test/twoo").catch((error: unknown) => error);
    expect(missing).toBeInstanceOf(OpenAI.NotFoundError);
    expect(missing).toMatchObject({ code: "unknown_model", param: "model" });
  });

  test("is read by Anthropic's client, with either of its headers", async () => {
    const { key } = await gateway.setUp();
    for (const credentials of [{ apiKey: key }, { apiKey: null, authToken: key }]) {
      const client = new Anthropic({ ...credentials, baseURL: gateway.url, maxRetries: 0 });
      const ids = [];
      for await (const model of client.models.list())
        ids.push(`${model.type} ${model.id} ${model.display_name}`);
      expect(ids).toEqual(["model test/one Model test/one", "model test/two Model test/two"]);
      expect((await client.models.retrieve("test/two")).id).toBe("test/two");
    }
  });
});

/** Its SDK, 1.3.19, checks every answer against a schema, and turns pages by `offset` until one is short. */
describe("the list as OpenRouter's clients need it", () => {
  test("tells prices per token, limits and what else their schema insists on", async () => {
    const { key } = await gateway.setUp();
    const { json } = await gateway.send("GET", "/v1/models", { bearer: key });
    expect(json).toMatchObject({ links: { next: null }, total_count: 2 });
    expect(json.data[0]).toMatchObject({
      id: "test/one",
      canonical_slug: "test/one",
      name: "Model test/one",
      created: 0,
      context_length: 1_000,
      architecture: { modality: "text->text", input_modalities: ["text"], output_modalities: ["text"] },
      pricing: {
        prompt: "0.000001",
        completion: "0.000002",
        input_cache_read: "0.000001",
        input_cache_write: "0.000001",
        input_cache_write_1h: "0.000001",
      },
      top_provider: { context_length: 1_000, max_completion_tokens: 100, is_moderated: false },
      per_request_limits: null,
      supported_parameters: ["temperature", "tools"],
      supported_voices: null,
      default_parameters: null,
      links: { details: "http://gateway.test/v1/models/test/one" },
    });
  });

  test.each<[string, string[], string | null]>([
    ["?limit=1", ["test/one"], "http://gateway.test/v1/models?limit=1&offset=1"],
    ["?limit=1&offset=1", ["test/two"], null],
    ["?limit=1&offset=2", [], null],
    ["?offset=1", ["test/two"], null],
    ["?offset=0&limit=2", ["test/one", "test/two"], null],
  ])("has pages by offset: %s", async (query, page, next) => {
    const { key } = await gateway.setUp();
    const { json } = await gateway.send("GET", `/v1/models${query}`, { bearer: key });
    expect(json.data.map(({ id }: { id: string }) => id)).toEqual(page);
    expect([json.links.next, json.total_count]).toEqual([next, 2]);
  });

  test("of an automatic route tells what it costs at most, and of the Open Tier that it costs nothing", async () => {
    const { key } = await gateway.setUp();
    const pricing = async (id: string) =>
      (await gateway.send("GET", `/v1/models/${id}`, { bearer: key })).json.pricing;
    expect(await pricing("gateway/auto:fast")).toMatchObject({ prompt: "0.000001", completion: "0.0000035" });
    for (const id of ["gateway/auto:free", "test/two:free"])
      expect(await pricing(id)).toMatchObject({ prompt: "0", completion: "0" });
  });
});

describe("a model by its id", () => {
  const show = async (id: string) => {
    const { key } = await gateway.setUp();
    const { status, json } = await gateway.send("GET", `/v1/models/${id}`, { bearer: key });
    return { status, json };
  };

  test.each(["gateway/auto:fast", "gateway%2Fauto%3Afast", "gateway/auto:free", "test/two:free"])(
    "is shown under every name that a request may have: %s",
    async (name) => {
      const { status, json } = await show(name);
      const id = decodeURIComponent(name);
      expect(status).toBe(200);
      expect(json).toMatchObject({ id, object: "model", type: "model", owned_by: id.split("/")[0] });
    },
  );

  test("of an automatic route has limits that hold whichever of its models serves", async () => {
    const { json } = await show("gateway/auto:fast");
    expect([json.context_length, json.max_output_tokens]).toEqual([900, 100]);
  });

  test.each([
    ["test/twoo", "test/two"],
    ["gateway/auto:fats", "gateway/auto:fast"],
    ["test/twoo:free", "test/two"],
  ])("that nobody published is refused as a request for it is: %s", async (id, closest) => {
    const { status, json } = await show(id);
    expect([status, json.error.code, json.error.param]).toEqual([404, "unknown_model", "model"]);
    const unknown = id.replace(":free", "");
    expect(json.error.message).toStartWith(
      `The model \`${unknown}\` is not in the catalog. Did you mean \`${closest}\`?`,
    );
  });
});

describe("the same list in two forms", () => {
  const ids = async (path: string, bearer: string, headers = {}): Promise<string[]> =>
    (await gateway.send("GET", path, { ...(bearer === "" ? {} : { bearer }), headers })).json.data.map(
      ({ id }: { id: string }) => id,
    );

  test("has the same models in the same order, whatever the credential may call", async () => {
    const made = await gateway.setUp();
    const narrow = await gateway.send("POST", "/v1/keys", {
      bearer: made.recovery_secret,
      body: { allowed_models: ["test/two"] },
    });
    for (const credential of [made.key, made.recovery_secret, narrow.json.key]) {
      const catalog = await ids("/v1/catalog", credential);
      expect(catalog).toEqual(["test/one", "test/two"]);
      expect(await ids("/v1/models", credential)).toEqual(catalog);
      const anthropics = { "x-api-key": credential, "anthropic-version": "2023-06-01" };
      expect(await ids("/v1/models", "", anthropics)).toEqual(catalog);
      expect(await ids("/v1/v1/models", "", anthropics)).toEqual(catalog);
      for (const id of catalog)
        for (const path of [`/v1/models/${id}`, `/v1/models/${encodeURIComponent(id)}`]) {
          const { status, json } = await gateway.send("GET", path, { headers: anthropics });
          expect([status, json.id]).toEqual([200, id]);
        }
    }
  });

  test.each<[string, string[], boolean]>([
    ["", ["test/one", "test/two"], false],
    ["?limit=1000", ["test/one", "test/two"], false],
    ["?limit=2", ["test/one", "test/two"], false],
    ["?limit=1", ["test/one"], true],
    ["?limit=1&after_id=test/one", ["test/two"], false],
    ["?after_id=test%2Fone", ["test/two"], false],
    ["?after_id=test/two", [], false],
    ["?limit=1&before_id=test/two", ["test/one"], false],
    ["?before_id=test/one", [], false],
  ])("a page as Anthropic's clients ask for it: %s", async (query, page, hasMore) => {
    const { key } = await gateway.setUp();
    const { json } = await gateway.send("GET", `/v1/models${query}`, { bearer: key });
    expect(json).toMatchObject({
      object: "list",
      has_more: hasMore,
      first_id: page[0] ?? null,
      last_id: page.at(-1) ?? null,
    });
    expect(json.data.map(({ id }: { id: string }) => id)).toEqual(page);
  });

  test.each([
    ["?limit=0", "limit"],
    ["?limit=1001", "limit"],
    ["?after_id=test/three", "after_id"],
    ["?before_id=", "before_id"],
    ["?after_id=test/one&before_id=test/two", "before_id"],
    ["?offset=-1", "offset"],
    ["?offset=1&after_id=test/one", "offset"],
  ])("a page that there is not: %s", async (query, param) => {
    const { key } = await gateway.setUp();
    const { status, json } = await gateway.send("GET", `/v1/models${query}`, { bearer: key });
    expect([status, json.error.code, json.error.param]).toEqual([400, "invalid_request", param]);
  });

  test("Anthropic's client turns the pages by itself, in both directions", async () => {
    const { key } = await gateway.setUp();
    const client = new Anthropic({ apiKey: key, baseURL: gateway.url, maxRetries: 0 });
    const read = async (query: Anthropic.ModelListParams) => {
      const ids = [];
      for await (const { id } of client.models.list(query)) ids.push(id);
      return ids;
    };
    expect(await read({ limit: 1 })).toEqual(["test/one", "test/two"]);
    expect(await read({ limit: 1, before_id: "test/two" })).toEqual(["test/one"]);
  });
});

describe("pages", () => {
  test("the errors reference has an anchor for every code, and needs nothing from outside", async () => {
    const { text, headers } = await gateway.send("GET", "/docs/errors");
    for (const code of ERROR_CODES) {
      expect(text).toContain(`<section id="${code}">`);
      expect(text).toContain(`HTTP ${ERRORS[code].status}`);
    }
    expect(text).not.toMatch(/<script|(src|href)="(https?:)?\/\//);
    const style = /<style>([\s\S]*)<\/style>/.exec(text)![1]!;
    const hash = new Bun.CryptoHasher("sha256").update(style).digest("base64");
    expect(headers.get("content-security-policy")).toContain(
      `default-src 'none'; style-src 'sha256-${hash}'`,
    );
  });

  test("the dashboard runs its own script under a policy without inline code, from addresses that never go stale", async () => {
    const { text, headers } = await gateway.send("GET", "/dashboard");
    const policy = headers.get("content-security-policy")!;
    expect(policy).toContain("script-src 'self'");
    expect(policy).not.toContain("unsafe");
    const files = [...text.matchAll(/(?:src|href)="(dashboard\/[^"]+)"/g)].map(([, file]) => file!);
    expect(files.map((file) => file.replace(/-\w+\./, "."))).toEqual([
      "dashboard/app.css",
      "dashboard/dashboard.js",
    ]);
    for (const file of files) {
      const { status, headers: sent } = await gateway.send("GET", `/${file}`);
      expect(status).toBe(200);
      expect(sent.get("cache-control")).toContain("immutable");
      expect(sent.get("content-type")).toMatch(/^text\/(css|javascript)/);
    }
  });

  test("the status page names models and hosts", async () => {
    const { text } = await gateway.send("GET", "/status");
    expect(text).toContain("No model has been used yet.");
    expect(text).toContain("<code>test/one</code>");
  });

  test("the status page tells how each host does", async () => {
    const unknown = { firstTokenMs: null, tokensPerSecond: null, served: 0, failed: 0, failingSince: null };
    const noon = epochMs(Date.UTC(2026, 10, 21, 12));
    const own = new TestGateway();
    own.health.reports = [
      {
        id: "fine",
        state: "closed",
        firstTokenMs: 123.4,
        tokensPerSecond: 56.7,
        served: 999,
        failed: 1,
        failingSince: null,
      },
      { id: "down", state: "open", ...unknown, failingSince: noon },
      { id: "partly", state: "degraded", ...unknown },
      { id: "back", state: "half_open", ...unknown },
    ];
    const { text } = await own.send("GET", "/status");
    await own.stop();
    const rows = text.replaceAll(/<[^>]+>/g, " ").replaceAll(/\s+/g, " ");
    expect(rows).toContain("First token 123 ms Throughput 57 tokens/s Answered 99.9% available");
    expect(rows).toContain("First token – Throughput – Answered – not available since 2026-11-21 12:00 UTC");
    expect(rows).toContain("Answered – available, except for some models");
    expect(rows).toContain("Answered – waiting for a request after failures");
  });

  test.each([
    ["/dashboard/", "../dashboard"],
    ["/admin/", "../admin"],
    ["/status/", "../status"],
    ["/docs", "docs/api"],
    ["/docs/", "api"],
    ["/docs/errors/", "../errors"],
  ])("%s leads to the page, wherever the gateway is mounted", async (path, to) => {
    const moved = await fetch(gateway.url + path, { redirect: "manual" });
    expect([moved.status, moved.headers.get("location")]).toEqual([308, to]);
    expect((await fetch(gateway.url + path, { method: "HEAD", redirect: "manual" })).status).toBe(308);
    const page = await fetch(gateway.url + path);
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  });

  test("readiness follows the gateway; health does not", async () => {
    gateway.unready = "it has to wait";
    const { status, text } = await gateway.send("GET", "/readyz");
    expect([status, text]).toEqual([503, "not ready: it has to wait\n"]);
    expect((await gateway.send("GET", "/healthz")).status).toBe(200);
    gateway.unready = null;
    expect((await gateway.send("GET", "/readyz")).status).toBe(200);
  });
});
