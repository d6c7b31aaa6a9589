import { afterAll, describe, expect, test } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { ADMIN } from "../process/gateway.ts";
import { open } from "./open.ts";

const host = await startFakeHost(() => json(chatText(["Fine."]).whole));
const row = (id: string, more: string) =>
  `  - { id: ${id}, base_url: "${host.url}/v1", speaks: [chat.completions], ${more} }`;
const gateway = await open(`
hosts:
${row("paris", "region: eu, zdr: true")}
${row("berlin", "region: EU")}
${row("ohio", "region: us, zdr: true")}
${row("unknown", "")}
models:
  - id: test/model
    context_length: 10000
    max_output_tokens: 1000
    routes:
      - { host: unknown, model: m, price: { input: 1, output: 1 } }
      - { host: ohio, model: m, price: { input: 2, output: 2 } }
      - { host: berlin, model: m, price: { input: 3, output: 3 } }
      - { host: paris, model: m, price: { input: 4, output: 4 } }
      - { host: unknown, model: m, free: true }
  - id: test/american
    context_length: 10000
    max_output_tokens: 1000
    price: { input: 2, output: 2 }
    routes: [{ host: ohio, model: m }]
auto:
  fast: [test/american, test/model]
  american: [test/american]
defaults: { accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null } }
`);
afterAll(() => closeAll(gateway, host));
const mine = await gateway.key(50);

const setPolicy = (policy: unknown, bearer = mine.recovery_secret) =>
  gateway.send("PATCH", `/v1/keys/${mine.id}`, { bearer, json: { policy } });

/** The host that serves, or the status with the parameter of the refusal. */
async function servedBy(request: object): Promise<string> {
  const reply = await gateway.chat(mine.key, request);
  if (reply.status !== 200) return `${reply.status} ${reply.json.error.param ?? reply.json.error.code}`;
  return (await gateway.receipt(reply, mine.key)).json.host;
}

describe("a key's policy and a request's preferences: the stricter of both", () => {
  const table: [policy: object | null, request: object, outcome: string][] = [
    [null, {}, "unknown"],
    [{ region: ["eu"] }, {}, "berlin"],
    [{ region: ["eu", "us"] }, {}, "ohio"],
    [{ region: ["asia"] }, {}, "400 policy.region"],
    [{ zdr: true }, {}, "ohio"],
    [{ zdr: false }, {}, "unknown"],
    [{ region: ["eu"], zdr: true }, {}, "paris"],
    [{ hosts: { only: ["Paris", "berlin"] } }, {}, "berlin"],
    [{ hosts: { ignore: ["unknown", "ohio"] } }, {}, "berlin"],
    [{ hosts: { only: ["paris"], ignore: ["paris"] } }, {}, "400 policy.hosts.ignore"],
    [{ hosts: { only: ["nowhere"] } }, {}, "400 policy.hosts.only"],
    [{ max_price: { completion: 1 } }, {}, "unknown"],
    [{ max_price: { prompt: 0.5 } }, {}, "400 policy.max_price"],
    [{ region: ["eu"], max_price: { prompt: 3 } }, {}, "berlin"],
    [{ region: ["eu"], max_price: { prompt: 2 } }, {}, "400 policy.max_price"],
    // Both at once.
    [{ region: ["eu"] }, { provider: { zdr: true } }, "paris"],
    [{ zdr: true }, { provider: { ignore: ["ohio"] } }, "paris"],
    [{ hosts: { only: ["ohio"] } }, { provider: { only: ["paris"] } }, "400 provider.only"],
    [
      { max_price: { prompt: 3 } },
      { provider: { max_price: { prompt: 100 }, order: ["paris", "ohio"] } },
      "ohio",
    ],
    [{ region: ["eu"] }, { provider: { max_price: { prompt: 2 } } }, "400 provider.max_price"],
    [{ zdr: true }, { provider: { zdr: false } }, "ohio"],
    // Other names for models.
    [{ region: ["us"] }, { model: "gateway/auto:fast" }, "ohio"],
    [{ region: ["eu"] }, { model: "gateway/auto:fast" }, "berlin"],
    [{ region: ["eu"] }, { model: "gateway/auto:american" }, "400 policy.region"],
    [{ region: ["eu"] }, { model: "test/american", models: ["test/model"] }, "berlin"],
    [{ region: ["eu"] }, { model: "test/american" }, "400 policy.region"],
    // The Open Tier.
    [null, { model: "test/model:free" }, "unknown"],
    [{ max_price: { prompt: 0 } }, { model: "test/model:free" }, "unknown"],
    [{ region: ["eu"] }, { model: "test/model:free" }, "503 policy"],
  ];
  for (const [policy, request, outcome] of table) {
    test(`${JSON.stringify(policy)} with ${JSON.stringify(request)}: ${outcome}`, async () => {
      expect((await setPolicy(policy)).status).toBe(200);
      expect(await servedBy(request)).toBe(outcome);
    });
  }
});

test("a refusal names the policy and the next step", async () => {
  await setPolicy({ region: ["asia"] });
  expect((await gateway.chat(mine.key)).json.error).toMatchObject({
    code: "invalid_request",
    param: "policy.region",
    message: expect.stringContaining(
      "This key's `policy.region` leaves no host that serves test/model. Name another model, or have the owner of the balance change the `policy` of the key.",
    ),
  });
});

describe("models that the key cannot reach are left out", () => {
  const listed = async (path: string, bearer = mine.key) =>
    (await gateway.send("GET", path, { bearer })).json.data.map((one: { id: string }) => one.id);
  test.each(["/v1/models", "/v1/catalog"])("of %s", async (path) => {
    await setPolicy({ region: ["eu"] });
    expect(await listed(path)).toEqual(["test/model"]);
    expect(await listed(path, mine.recovery_secret)).toEqual(["test/model", "test/american"]);
    await setPolicy({ region: ["asia"] });
    expect(await listed(path)).toEqual([]);
    await setPolicy(null);
    expect(await listed(path)).toEqual(["test/model", "test/american"]);
  });

  test("of the count in all, and of what a model has: its price, and whether the Open Tier serves it", async () => {
    const first = async () => (await gateway.send("GET", "/v1/catalog", { bearer: mine.key })).json.data[0];
    expect(await first()).toMatchObject({ id: "test/model", price: { input: 1 }, free: true });
    await setPolicy({ region: ["eu"] });
    expect(await first()).toMatchObject({
      id: "test/model",
      price: { input: 3 },
      free: false,
      available: true,
    });
    const { json } = await gateway.send("GET", "/v1/models", { bearer: mine.key });
    expect(json.total_count).toBe(1);
    await setPolicy(null);
  });
});

describe("who sets a policy", () => {
  test("owners and operators; it is shown, kept by a rotation, and lifted by null", async () => {
    const policy = { region: ["eu"], zdr: true, hosts: { ignore: ["ohio"] }, max_price: { prompt: 4 } };
    const made = await gateway.send("POST", "/v1/keys", { bearer: mine.recovery_secret, json: { policy } });
    expect(made.json.policy).toEqual(policy);
    const rotated = await gateway.send("POST", `/v1/keys/${made.json.id}/rotate`, { bearer: made.json.key });
    expect(rotated.json.policy).toEqual(policy);
    const path = `/admin/keys/${rotated.json.id}`;
    const changed = await gateway.send("PATCH", path, { bearer: ADMIN, json: { policy: null } });
    expect(changed.json.policy).toBeNull();
    const again = await gateway.send("PATCH", path, { bearer: ADMIN, json: { policy } });
    expect(again.json.policy).toEqual(policy);
    expect(
      (await gateway.send("GET", `/v1/keys/${rotated.json.id}`, { bearer: mine.recovery_secret })).json
        .policy,
    ).toEqual(policy);
  });

  test("not a key: it can repeat its own, and change nothing of it", async () => {
    await setPolicy({ zdr: true });
    expect((await setPolicy({ zdr: true }, mine.key)).status).toBe(200);
    for (const policy of [null, { zdr: false }, { zdr: true, region: ["eu"] }]) {
      const refused = await setPolicy(policy, mine.key);
      expect(refused.status).toBe(400);
      expect(refused.json.error).toMatchObject({ param: "policy", code: "invalid_request" });
    }
  });

  const wrong: [policy: unknown, named: string][] = [
    ["eu", "policy"],
    [{ regions: ["eu"] }, "policy"],
    [{ region: "eu" }, "policy"],
    [{ region: [] }, "policy"],
    [{ zdr: "yes" }, "policy"],
    [{ hosts: ["a"] }, "policy"],
    [{ hosts: { deny: ["a"] } }, "policy"],
    [{ max_price: { prompt: -1 } }, "policy"],
  ];
  for (const [policy, named] of wrong) {
    test(`${JSON.stringify(policy)} is refused, naming ${named}`, async () => {
      const refused = await setPolicy(policy);
      expect(refused.status).toBe(400);
      expect(refused.json.error.param).toStartWith(named);
    });
  }
});
