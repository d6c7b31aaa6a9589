import { afterAll, describe, expect, test } from "bun:test";
import { DAY_MS } from "../../src/units/clock.ts";
import { type Sent, TestGateway } from "./test-gateway.ts";

const gateway = new TestGateway();
afterAll(() => gateway.stop());

describe("POST /v1/keys without a header", () => {
  test("gives a key, a recovery secret and the accountless limits, each secret once", async () => {
    const { status, json, headers } = await gateway.send("POST", "/v1/keys");
    expect(status).toBe(201);
    expect(json.key).toMatch(/^or-live-[1-9A-HJ-NP-Za-km-z]{32}$/);
    expect(json.recovery_secret).toMatch(/^or-rec-[1-9A-HJ-NP-Za-km-z]{44}$/);
    expect(json.recovery_url).toBe(`http://gateway.test/dashboard#recover=${json.recovery_secret}`);
    expect(json.prefix).toBe(json.key.slice(0, 12));
    expect(json).toMatchObject({
      state: "active",
      rpm_limit: 60,
      tpm_limit: 400_000,
      daily_limit_usd: 5,
      monthly_limit_usd: 50,
      allowed_models: null,
      budget: null,
      expires_at: null,
    });
    expect(headers.get("x-gateway-receipt")).toStartWith("rcpt_");
    expect(headers.get("cache-control")).toBe("no-store");
    const seen = await gateway.send("GET", `/v1/keys/${json.id}`, { bearer: json.recovery_secret });
    expect(seen.text).not.toContain(json.key);
    expect(seen.text).not.toContain("hash");
  });

  test("naming a balance is no way to make another one: who means one of theirs has lost their session", async () => {
    const { balance_id } = await gateway.setUp();
    const named = await gateway.send("POST", "/v1/keys", { headers: { "x-gateway-balance": balance_id } });
    expect([named.status, named.json.error.code]).toEqual([401, "missing_api_key"]);
  });

  test("keeps no plaintext in the database", async () => {
    const { key, recovery_secret } = await gateway.setUp();
    const dump = Buffer.from(gateway.db.serialize()).toString("latin1");
    expect(dump).not.toContain(key);
    expect(dump).not.toContain(recovery_secret);
    expect(dump).toContain(new Bun.CryptoHasher("sha256").update(key).digest("hex"));
  });

  test("takes limits of its own", async () => {
    const { status, json } = await gateway.send("POST", "/v1/keys", {
      body: { daily_limit_usd: 1.25, rpm_limit: null },
    });
    expect(status).toBe(201);
    expect(json).toMatchObject({ daily_limit_usd: 1.25, rpm_limit: null });
  });
});

describe("limits that cannot be", () => {
  const wrong: [unknown, string | null][] = [
    [{ rpm_limit: "ten" }, "rpm_limit"],
    [{ rpm_limit: -1 }, "rpm_limit"],
    [{ rpm_limit: 1.5 }, "rpm_limit"],
    [{ daily_limit_usd: -0.01 }, "daily_limit_usd"],
    [{ daily_limit_usd: 0.00000000001 }, "daily_limit_usd"],
    [{ monthly_limit_usd: 1e12 }, "monthly_limit_usd"],
    [{ allowed_models: [] }, "allowed_models"],
    [{ allowed_models: [1] }, "allowed_models"],
    [{ allowed_models: ["gpt-4o"] }, "allowed_models"],
    [{ allowed_models: ["openai/*"] }, "allowed_models"],
    [{ allowed_models: ["test/one", "gateway/auto:*"] }, "allowed_models"],
    [{ allowed_models: ["test/one", "gateway/auto:"] }, "allowed_models"],
    [{ allowed_models: ["test/one", "gateway/auto"] }, "allowed_models"],
    [{ allowed_models: ["gateway/auto:fast", "gateway/auto:deep"] }, "allowed_models"],
    [{ budget: 7 }, "budget"],
    [{ budget: "nowhere" }, "budget"],
    [{ expires_at: "tomorrow" }, "expires_at"],
    [{ expires_at: "2098-02-30T00:00:00Z" }, "expires_at"],
    [{ expires_at: "2020-01-01T00:00:00Z" }, "expires_at"],
    [{ name: "" }, "name"],
    [{ spend: 1 }, "spend"],
    [{ constructor: 1 }, "constructor"],
    ['{"__proto__": {"rpm_limit": 1}}', "__proto__"],
    ["{", null],
    ["[]", null],
    ["7", null],
    ["null", null],
  ];
  test.each(wrong)("%p is refused by the name of the field", async (body, param) => {
    const { status, json } = await gateway.send("POST", "/v1/keys", { body });
    expect(status).toBe(400);
    expect(json.error).toMatchObject({ code: "invalid_request", type: "invalid_request_error", param });
    if (param !== null) expect(json.error.message).toContain(`\`${param}\``);
    expect(json.error.message).toEndWith("See http://gateway.test/docs/errors#invalid_request");
  });
});

test.each([
  ["a model that is not published yet", ["next/model"]],
  ["a free model", ["test/one:free"]],
  ["what Auto may pick, next to its name", ["gateway/auto:fast", "test/one"]],
  ["whatever the Open Tier has", ["gateway/auto:free"]],
])("a key may be allowed %s", async (_, allowed_models) => {
  const { status, json } = await gateway.send("POST", "/v1/keys", { body: { allowed_models } });
  expect([status, json.allowed_models]).toEqual([201, allowed_models]);
});

describe("an owner", () => {
  test("creates further keys on the balance, lists and changes them", async () => {
    const { recovery_secret, id, balance_id } = await gateway.setUp();
    const second = await gateway.send("POST", "/v1/keys", {
      bearer: recovery_secret,
      body: { name: "agent", allowed_models: ["test/one"] },
    });
    expect(second.status).toBe(201);
    expect(second.json).toMatchObject({ name: "agent", balance_id, allowed_models: ["test/one"] });
    expect(second.json.recovery_secret).toBeUndefined();

    const list = await gateway.send("GET", "/v1/keys", { bearer: recovery_secret });
    expect(list.json.data.map((key: { id: string }) => key.id).toSorted()).toEqual(
      [id, second.json.id].toSorted(),
    );

    const page = await gateway.send("GET", "/v1/keys?limit=1", { bearer: recovery_secret });
    expect(page.json.has_more).toBe(true);
    const rest = await gateway.send("GET", `/v1/keys?limit=1&before=${page.json.data[0].id}`, {
      bearer: recovery_secret,
    });
    expect(rest.json.has_more).toBe(false);
    expect([page.json.data[0].id, rest.json.data[0].id].toSorted()).toEqual([id, second.json.id].toSorted());

    const raised = await gateway.send("PATCH", `/v1/keys/${id}`, {
      bearer: recovery_secret,
      body: { rpm_limit: 1_000, daily_limit_usd: null },
    });
    expect(raised.json).toMatchObject({ rpm_limit: 1_000, daily_limit_usd: null, monthly_limit_usd: 50 });
  });

  test("does not see the keys of another balance", async () => {
    const [mine, theirs] = [await gateway.setUp(), await gateway.setUp()];
    for (const [method, path] of [
      ["GET", ""],
      ["PATCH", ""],
      ["DELETE", ""],
      ["POST", "/rotate"],
      ["POST", "/revoke"],
    ] as const) {
      const { status, json } = await gateway.send(method, `/v1/keys/${theirs.id}${path}`, {
        bearer: mine.recovery_secret,
        ...(method === "PATCH" ? { body: {} } : {}),
      });
      expect([status, json.error.code, json.error.param]).toEqual([400, "invalid_request", "id"]);
    }
    expect((await gateway.send("GET", "/v1/me", { bearer: theirs.key })).status).toBe(200);
  });
});

describe("a key", () => {
  const body = {
    rpm_limit: 60,
    allowed_models: ["test/one", "test/two"],
    expires_at: "2099-01-01T00:00:00Z",
  };
  const changes: [unknown, number][] = [
    [{ rpm_limit: 10 }, 200],
    [{ rpm_limit: 60 }, 200],
    [{ rpm_limit: 61 }, 400],
    [{ rpm_limit: null }, 400],
    [{ daily_limit_usd: 4.99 }, 200],
    [{ daily_limit_usd: 5.01 }, 400],
    [{ allowed_models: ["test/two"] }, 200],
    [{ allowed_models: ["test/one", "other/model"] }, 400],
    [{ allowed_models: null }, 400],
    [{ expires_at: "2098-01-01T00:00:00Z" }, 200],
    [{ expires_at: "2099-01-02T00:00:00Z" }, 400],
    [{ expires_at: null }, 400],
    [{ budget: "team" }, 400],
    [{ name: "other" }, 400],
    [{ rpm_limit: 10, daily_limit_usd: 6 }, 400],
  ];
  test.each(changes)(
    "that changes itself by %p is answered %d: it may only tighten itself",
    async (change, status) => {
      const { id, key } = await gateway.setUp(body);
      const changed = await gateway.send("PATCH", `/v1/keys/${id}`, { bearer: key, body: change });
      expect(changed.status).toBe(status);
      const after = await gateway.send("GET", `/v1/keys/${id}`, { bearer: key });
      if (status === 200) expect(after.json).toMatchObject(normal(change));
      else
        expect(after.json).toMatchObject({
          rpm_limit: 60,
          daily_limit_usd: 5,
          allowed_models: body.allowed_models,
        });
    },
  );

  test("that may not put its end off shows the end in ISO 8601", async () => {
    const { id, key } = await gateway.setUp(body);
    const change = { expires_at: null };
    const { json } = await gateway.send("PATCH", `/v1/keys/${id}`, { bearer: key, body: change });
    expect(json.error.message).toContain("`expires_at` is 2099-01-01T00:00:00.000Z,");
  });

  test("lists itself and nothing else", async () => {
    const { id, key, recovery_secret } = await gateway.setUp();
    await gateway.send("POST", "/v1/keys", { bearer: recovery_secret });
    const { json } = await gateway.send("GET", "/v1/keys", { bearer: key });
    expect(json.data.map((one: { id: string }) => one.id)).toEqual([id]);
  });
});

describe("rotation", () => {
  test("by the key: a new id and secret, the same limits, 24 hours of grace for the old one", async () => {
    const { id, key, recovery_secret } = await gateway.setUp({ rpm_limit: 7, name: "agent" });
    const rotated = await gateway.send("POST", `/v1/keys/${id}/rotate`, { bearer: key });
    expect(rotated.status).toBe(200);
    expect(rotated.json).toMatchObject({ rpm_limit: 7, name: "agent", old_key: { id } });
    expect(rotated.json.id).not.toBe(id);
    const grace = Date.parse(rotated.json.old_key.expires_at) - Date.parse(rotated.json.created_at);
    expect(grace).toBe(DAY_MS);

    expect((await gateway.send("GET", "/v1/me", { bearer: key })).status).toBe(200);
    expect((await gateway.send("GET", "/v1/me", { bearer: rotated.json.key })).status).toBe(200);
    const old = await gateway.send("GET", `/v1/keys/${id}`, { bearer: recovery_secret });
    expect(old.json.state).toBe("rotated");

    const again = await gateway.send("POST", `/v1/keys/${id}/rotate`, { bearer: key });
    expect([again.status, again.json.error.code]).toEqual([400, "invalid_request"]);
  });

  test("by the recovery secret: the old key ends at once, and the secret goes on working", async () => {
    const { id, key, recovery_secret } = await gateway.setUp();
    expect((await gateway.send("GET", "/v1/me", { bearer: key })).status).toBe(200);
    const first = await gateway.send("POST", `/v1/keys/${id}/rotate`, { bearer: recovery_secret });
    expect(first.status).toBe(200);
    expect((await gateway.send("GET", "/v1/me", { bearer: key })).json.error.code).toBe("invalid_api_key");
    const second = await gateway.send("POST", `/v1/keys/${first.json.id}/rotate`, {
      bearer: recovery_secret,
    });
    expect(second.status).toBe(200);
    expect((await gateway.send("GET", "/v1/me", { bearer: second.json.key })).status).toBe(200);
  });

  test("by the recovery secret: the key that took a stolen one's place is replaced, without knowing its id", async () => {
    const { id, key: stolen, recovery_secret } = await gateway.setUp({ rpm_limit: 7 });
    const first = await gateway.send("POST", `/v1/keys/${id}/rotate`, { bearer: stolen });
    const thief = await gateway.send("POST", `/v1/keys/${first.json.id}/rotate`, { bearer: first.json.key });
    const mine = await gateway.send("POST", `/v1/keys/${id}/rotate`, { bearer: recovery_secret });
    expect(mine.json).toMatchObject({ rpm_limit: 7, old_key: { id: thief.json.id } });
    for (const bearer of [stolen, first.json.key, thief.json.key]) {
      expect((await gateway.send("GET", "/v1/me", { bearer })).status).toBe(401);
    }
    expect((await gateway.send("GET", "/v1/me", { bearer: mine.json.key })).status).toBe(200);
    const later = await gateway.send("POST", `/v1/keys/${id}/rotate`, { bearer: recovery_secret });
    expect(later.json.error.message).toContain("is revoked");
  });

  test("by the recovery secret: keys in their grace end too, so a thief who rotated keeps none", async () => {
    const { id, key: stolen, recovery_secret } = await gateway.setUp();
    const thief = await gateway.send("POST", `/v1/keys/${id}/rotate`, { bearer: stolen });
    for (const bearer of [stolen, thief.json.key])
      expect((await gateway.send("GET", "/v1/me", { bearer })).status).toBe(200);
    const mine = await gateway.send("POST", `/v1/keys/${thief.json.id}/rotate`, { bearer: recovery_secret });
    for (const bearer of [stolen, thief.json.key])
      expect((await gateway.send("GET", "/v1/me", { bearer })).json.error.code).toBe("invalid_api_key");
    expect((await gateway.send("GET", "/v1/me", { bearer: mine.json.key })).status).toBe(200);
    const old = await gateway.send("GET", `/v1/keys/${id}`, { bearer: recovery_secret });
    expect(old.json.state).toBe("revoked");
  });

  test("twice at once: one wins, the other is refused", async () => {
    const { id, key } = await gateway.setUp();
    const both = await Promise.all(
      [1, 2].map(() => gateway.send("POST", `/v1/keys/${id}/rotate`, { bearer: key })),
    );
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 400]);
  });

  test("never prolongs a key that was to expire sooner", async () => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const { id, key } = await gateway.setUp({ expires_at });
    const { json } = await gateway.send("POST", `/v1/keys/${id}/rotate`, { bearer: key });
    expect([json.expires_at, json.old_key.expires_at]).toEqual([expires_at, expires_at]);
  });
});

describe("revocation", () => {
  test.each(["DELETE", "POST"])("by %s holds for the very next request", async (method) => {
    const { id, key, recovery_secret } = await gateway.setUp();
    expect((await gateway.send("GET", "/v1/me", { bearer: key })).status).toBe(200);
    const path = method === "DELETE" ? `/v1/keys/${id}` : `/v1/keys/${id}/revoke`;
    const { status, json } = await gateway.send(method, path, { bearer: key });
    expect([status, json]).toEqual([200, { id, state: "revoked" }]);
    const after = await gateway.send("GET", "/v1/me", { bearer: key });
    expect([after.status, after.json.error.code]).toEqual([401, "invalid_api_key"]);
    const again = await gateway.send(method, path, { bearer: recovery_secret });
    expect(again.json).toEqual({ id, state: "revoked" });
    const revived = await gateway.send("PATCH", `/v1/keys/${id}`, {
      bearer: recovery_secret,
      body: { rpm_limit: 1 },
    });
    expect(revived.status).toBe(400);
  });

  test("unknown, revoked and expired keys get one answer", async () => {
    const revoked = await gateway.setUp();
    await gateway.send("DELETE", `/v1/keys/${revoked.id}`, { bearer: revoked.key });
    const expired = await gateway.setUp({ expires_at: "2099-01-01T00:00:00Z" });
    gateway.db.run("UPDATE keys SET expires_at = 1 WHERE id = ?", [expired.id]);
    const answers = await Promise.all(
      [`or-live-${"1".repeat(32)}`, "nonsense", revoked.key, expired.key].map((bearer) =>
        gateway.send("GET", "/v1/me", { bearer }),
      ),
    );
    expect(new Set(answers.map(({ text, status }) => `${status} ${text}`)).size).toBe(1);
    expect(answers[0]!.json.error.message).toContain("or-live-");
    const secret = await gateway.send("GET", "/v1/me", { bearer: `or-rec-${"1".repeat(44)}` });
    expect([secret.status, secret.json.error.code]).toEqual([401, "invalid_api_key"]);
    expect(secret.json.error.message).toContain("or-live-");
  });
});

test("creating keys without an account is throttled by address, and by the /64 behind a proxy on this machine", async () => {
  gateway.settings = { ...gateway.settings, accountlessKeysPerAddressPerHour: 2 };
  const from = (address: string) =>
    gateway.send("POST", "/v1/keys", { headers: { "x-forwarded-for": `6.6.6.6, ${address}` } });
  const statuses = [];
  for (const address of [
    "2001:db8::1",
    "2001:db8::2",
    "2001:db8:0:0:ffff::3",
    "2001:db8:0:1::1",
    "192.0.2.1",
  ]) {
    statuses.push((await from(address)).status);
  }
  expect(statuses).toEqual([201, 201, 429, 201, 201]);
  const { json, headers } = await from("2001:db8::9");
  expect(json.error).toMatchObject({ code: "rate_limited", type: "rate_limit_error" });
  expect(Number(headers.get("retry-after"))).toBeGreaterThan(3_000);
  gateway.settings = { ...gateway.settings, accountlessKeysPerAddressPerHour: 1_000 };
});

const normal = (change: unknown): object =>
  Object.fromEntries(
    Object.entries(change as object).map(([field, value]) => [
      field,
      field === "expires_at" ? new Date(value as string).toISOString() : value,
    ]),
  );

describe("keys that nobody pays for", () => {
  const post = (path: string, bearer: string, address = "192.0.2.1") =>
    gateway.send("POST", path, { bearer, body: {}, headers: { "x-forwarded-for": address } });
  const codes = async (answers: Promise<Sent>[]) => {
    const counts: Record<string, number> = {};
    for (const { status } of await Promise.all(answers)) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  };

  test("are bounded a day and balance, revoked and rotated ones included; revoking is not", async () => {
    const { id, recovery_secret, balance_id } = await gateway.setUp();
    const another = (n: number) => post("/v1/keys", recovery_secret, `198.51.100.${n}`);
    let latest = id;
    for (let n = 1; n < 100; n++) {
      const rotates = n % 2 === 0;
      const path = rotates ? `/v1/keys/${latest}/rotate` : "/v1/keys";
      const { status, json } = await post(path, recovery_secret, `198.51.100.${n}`);
      expect(status).toBe(rotates ? 200 : 201);
      if (rotates) latest = json.id;
      else await gateway.send("DELETE", `/v1/keys/${json.id}`, { bearer: recovery_secret });
    }
    const refused = await another(100);
    expect([refused.status, refused.json.error.code]).toEqual([429, "rate_limited"]);
    expect(refused.json.error.message).toContain("made 100 keys within 24 hours");
    expect((await gateway.send("DELETE", `/v1/keys/${latest}`, { bearer: recovery_secret })).status).toBe(
      200,
    );
    gateway.fund(balance_id);
    expect((await another(101)).status).toBe(201);
  });

  test("are bounded an hour and network, over all of its balances", async () => {
    const balances = await Promise.all(Array.from({ length: 4 }, () => gateway.setUp()));
    const requests = balances.flatMap(({ recovery_secret }) =>
      Array.from({ length: 40 }, () => post("/v1/keys", recovery_secret, "192.0.2.77")),
    );
    expect(await codes(requests)).toEqual({ 201: 120, 429: 40 });
    const [{ id, recovery_secret, balance_id }] = balances as [Awaited<ReturnType<typeof gateway.setUp>>];
    expect((await post(`/v1/keys/${id}/rotate`, recovery_secret, "192.0.2.77")).status).toBe(429);
    expect((await gateway.send("DELETE", `/v1/keys/${id}`, { bearer: recovery_secret })).status).toBe(200);
    gateway.fund(balance_id);
    expect((await post("/v1/keys", recovery_secret, "192.0.2.77")).status).toBe(201);
  });
});

test("all networks together create a hundred times as many keys an hour as one address; with an owner's secret it goes on", async () => {
  const crowded = new TestGateway();
  try {
    crowded.settings.accountlessKeysPerAddressPerHour = 1;
    const create = (n: number) =>
      crowded.send("POST", "/v1/keys", { headers: { "x-forwarded-for": `198.18.${n}.1` } });
    const made = await Promise.all(Array.from({ length: 100 }, (_, n) => create(n)));
    expect(made.filter(({ status }) => status === 201)).toHaveLength(100);
    // Who tries again has not used up what their own network may do.
    for (let tries = 0; tries < 3; tries++) {
      const { status, json } = await create(100);
      expect([status, json.error.code]).toEqual([429, "rate_limited"]);
      expect(json.error.message).toContain("than this gateway gives out");
    }
    const bearer = made[0]!.json.recovery_secret;
    expect((await crowded.send("POST", "/v1/keys", { bearer, body: {} })).status).toBe(201);
  } finally {
    await crowded.stop();
  }
});
