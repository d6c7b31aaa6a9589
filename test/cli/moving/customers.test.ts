import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startSimulatedHost } from "../../../src/hosts/simulated/host.ts";
import { systemClock } from "../../../src/units/clock.ts";
import { systemRandom } from "../../../src/units/random.ts";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "../../process/gateway.ts";
import { gateway, type Run } from "../command.ts";
import { writeNewApi } from "./new-api-database.ts";
import { anyModelAt, readPrinted, reported, tried } from "./printed.ts";

/** Sources with customers: their configuration is printed, then a gateway on it gets their balances and keys. */
const simulated = startSimulatedHost({ clock: systemClock, random: systemRandom, paceMs: 0 });
const host = anyModelAt(simulated.url);
const address = `http://127.0.0.1:${host.port}/v1`;
const folder = new Folder(simpleConfig([9]));
const at = (name: string): string => join(folder.path, name);
const imported = (...args: string[]): Promise<Run> => gateway(["import", ...args], {}, folder.path);

let printed: Run;
let running: GatewayProcess;
beforeAll(async () => {
  writeNewApi(at("one-api.db"));
  printed = await imported("new-api", "one-api.db", "--out", "moved.yaml");
  expect([printed.code, printed.out]).toEqual([0, ""]);
  const text = readFileSync(at("moved.yaml"), "utf8").replaceAll(/base_url: .*/g, `base_url: ${address}`);
  folder.configure(text.replaceAll(/\$\{[A-Z0-9_]+\}/g, "a-key"));
  running = await GatewayProcess.start(folder, { OPENAI_API_KEY: "a-key", OPENAI_API_KEY_2: "b-key" });
}, 60_000);
afterAll(async () => {
  await running?.stop();
  await host.stop(true);
  await simulated.stop();
  folder.remove();
});

const make = (from: string, mapping: string, ...args: string[]): Promise<Run> =>
  gateway(
    ["import", from, ...args, "--customers", mapping],
    { GATEWAY_URL: running.url, GATEWAY_ADMIN_TOKEN: ADMIN },
    folder.path,
  );

interface Line {
  readonly [member: string]: string;
}
const linesOf = (mapping: string): Line[] =>
  readFileSync(at(mapping), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

const lineOf = (mapping: string, source: string): Line =>
  linesOf(mapping).find((line) => line.source === source && line.done === undefined)!;

const credited = async (): Promise<bigint> => BigInt((await running.audit()).json.credits_nano);

describe("gateway import new-api", () => {
  test("prints channels as hosts, by priority and weight, with the prices of ratios", async () => {
    const { hosts, models } = readPrinted(at("moved.yaml"));
    expect(hosts.map(({ id, base_url, keys }) => [id, base_url, keys])).toEqual([
      ["openai", "https://api.openai.com/v1", [{ env: "OPENAI_API_KEY" }, { env: "OPENAI_API_KEY_2" }]],
      ["openai-2", "https://reseller.example.com/v1", undefined],
      ["anthropic", "https://api.anthropic.com/v1", undefined],
    ]);
    const rows = models.map(({ id, price, routes }) => [
      id,
      price,
      routes.map((route) => `${route.host} ${route.model}`),
    ]);
    expect(rows).toEqual([
      ["openai/gpt-4o", { input: 2.5, output: 10, cache_read: 1.25 }, ["openai gpt-4o", "openai-2 gpt-4o"]],
      ["openai/gpt-4o-mini", expect.anything(), ["openai gpt-4o-mini"]],
      ["openai/house-model", { input: 1, output: 2 }, ["openai-2 house-70b"]],
      ["anthropic/claude-sonnet-4-5", expect.anything(), ["anthropic claude-sonnet-4-5"]],
    ]);
  });

  test("its configuration is valid without a warning, and every model answers", async () => {
    const [check, trial] = await tried(at("moved.yaml"), folder.path, address);
    expect([check.code, check.err]).toEqual([0, ""]);
    expect([trial.err, trial.code]).toEqual(["", 0]);
  });

  test("keeps secrets of channels in a file that its owner alone reads", () => {
    const everything = readFileSync(at("moved.yaml"), "utf8") + printed.err;
    const secrets = readFileSync(at("gateway.env"), "utf8");
    for (const secret of ["sk-openai-one", "sk-openai-two", "sk-reseller", "sk-ant"]) {
      expect(secrets).toContain(secret);
      expect(everything).not.toContain(secret);
    }
    expect(statSync(at("gateway.env")).mode & 0o777).toBe(0o600);
  });

  test("says of everything that is left out why", () => {
    const expected = [
      "channels[1] main: its key 3 is disabled",
      "channels[1] main: text-embedding-3-small: only text is generated here",
      "channels[2] reseller: param_override: requests are not changed",
      "channels[3] claude: claude-call: it is priced by the call",
      "channels[4] off: it is disabled",
      "channels[5] bedrock: channels of type 33 are not served here",
      "options.SystemName: there is no such setting here",
      "tokens[2] phone: allow_ips: keys work from every address here",
      "tokens[2] phone: model_limits: nowhere is not carried",
      "tokens[3] off: it does not work there",
      "tokens[4] past: it has expired",
      "tokens[5] empty: its quota is used up",
      "tokens[6] lost: model_limits: nowhere is not carried",
      "tokens[6] lost: none of the models that it may call is carried",
      "users[4] owes: quota: it owes 1 USD",
      "users[5] idle: it has neither quota nor a token that works",
      "users[7] gone: it was deleted, with 0.5 USD left",
    ];
    const lines = reported(printed, "Left out").sort();
    expect(lines.map((line, index) => line.slice(0, expected[index]?.length))).toEqual(expected);
  });

  test("users become balances to the nano-dollar, tokens keys; repeating it gives nothing twice", async () => {
    const before = await credited();
    const run = await make("new-api", "keys.jsonl", "one-api.db");
    expect([run.err, run.code]).toEqual([expect.stringContaining("; 5 of the balances were made now"), 0]);
    // root 1, alice 6,172,839, bob 2,500,000 and banned 1,000,000 units, of which 500,000 are a dollar.
    const expected = (1n + 6_172_839n + 2_500_000n + 1_000_000n) * 2_000n;
    expect((await credited()) - before).toBe(expected);
    expect(run.err).toContain("19.34568 USD of credit");
    expect(statSync(at("keys.jsonl")).mode & 0o777).toBe(0o600);

    const lines = readFileSync(at("keys.jsonl"), "utf8");
    const again = await make("new-api", "keys.jsonl", "one-api.db");
    expect([again.err, again.code]).toEqual([
      expect.stringContaining("; 0 of the balances were made now"),
      0,
    ]);
    expect(readFileSync(at("keys.jsonl"), "utf8")).toBe(lines);
    expect((await credited()) - before).toBe(expected);
    expect((await running.audit()).json.ok).toBe(true);
  });

  test("an import that broke off before the credit goes on, and credits once", async () => {
    const lines = readFileSync(at("keys.jsonl"), "utf8").trim().split("\n");
    const unfinished = lines.filter((line) => !line.includes('"done"'));
    writeFileSync(at("keys.jsonl"), `${unfinished.join("\n")}\n`);
    const before = await credited();
    const run = await make("new-api", "keys.jsonl", "one-api.db");
    expect([run.err, run.code]).toEqual([expect.stringContaining("; 5 of the balances were made now"), 0]);
    expect((await credited()) - before).toBe(0n);
  });

  test("without its mapping it refuses to credit the same users again", async () => {
    const before = await credited();
    const run = await make("new-api", "other.jsonl", "one-api.db");
    expect([run.code, run.err]).toEqual([3, expect.stringContaining("`idempotency_key` was already used")]);
    expect((await credited()) - before).toBe(0n);
  });

  test("keys have their token's models, end and quota, and their group's prices", async () => {
    const phone = lineOf("keys.jsonl", "token:2");
    const key = await running.get(`/admin/keys/${phone.key_id}`, ADMIN);
    expect(key.json).toMatchObject({
      name: "phone",
      allowed_models: ["openai/gpt-4o"],
      expires_at: "2100-01-01T00:00:00.000Z",
      budget: "token-2",
      price_list: "vip",
      rpm_limit: null,
      daily_limit_usd: null,
    });
    const budgets = await running.get(`/admin/balances/${phone.balance_id}/budgets`, ADMIN);
    expect(budgets.json.data).toMatchObject([{ name: "token-2", cap_usd: 0.246914, window: "total" }]);
    const body = { model: "gpt-4o", max_tokens: 20, messages: [{ role: "user", content: "Hello" }] };
    expect((await running.post("/v1/chat/completions", body, phone.key!)).status).toBe(200);
  });

  test("a user who is disabled there is suspended here", async () => {
    const { balance_id } = lineOf("keys.jsonl", "user:6");
    const balance = await running.get(`/admin/balances/${balance_id}`, ADMIN);
    expect(balance.json).toMatchObject({ suspended: "acceptable_use", credited_usd: 2 });
  });

  test("a file that is no database of new-api is refused", async () => {
    writeFileSync(at("none.db"), "nothing");
    const run = await imported("new-api", "none.db");
    expect([run.code, run.err]).toEqual([2, expect.stringContaining("is not new-api's SQLite database")]);
  });
});

const EXPORT = {
  data: [
    {
      hash: "f01d52606dc8f0a8",
      name: "total",
      disabled: false,
      limit: 100,
      limit_remaining: 74.5,
      limit_reset: null,
      usage: 25.5,
    },
    {
      hash: "0a11",
      name: "month",
      disabled: false,
      limit: 20,
      limit_remaining: 20,
      limit_reset: "monthly",
      usage: 0,
    },
    {
      hash: "0b22",
      name: "week",
      disabled: false,
      limit: 5,
      limit_remaining: 1,
      limit_reset: "weekly",
      usage: 4,
    },
    {
      hash: "0c33",
      name: "day",
      disabled: false,
      limit: 1.25,
      limit_remaining: 1.25,
      limit_reset: "daily",
      usage: 0,
    },
    {
      hash: "0d44",
      name: "free",
      disabled: false,
      limit: null,
      limit_remaining: null,
      limit_reset: null,
      usage: 3,
      expires_at: "2100-01-01T00:00:00Z",
    },
    {
      hash: "0e55",
      name: "off",
      disabled: true,
      limit: null,
      limit_remaining: null,
      limit_reset: null,
      usage: 0,
    },
    {
      hash: "0f66",
      name: "byok",
      disabled: false,
      limit: 2,
      limit_remaining: 0.30000000000000004,
      limit_reset: null,
      usage: 1,
      include_byok_in_limit: true,
    },
  ],
};

describe("gateway import openrouter", () => {
  test("prints OpenRouter's models, and names what it leaves out", async () => {
    writeFileSync(at("export.json"), JSON.stringify(EXPORT));
    const run = await imported("openrouter", "export.json", "--out", "openrouter.yaml");
    expect(run.code).toBe(0);
    expect(readPrinted(at("openrouter.yaml")).hosts.map(({ id }) => id)).toEqual(["openrouter"]);
    expect(reported(run, "Left out")).toEqual([
      "data[5] off: it is disabled",
      "data[6] byok: include_byok_in_limit: customers bring no keys of providers here",
    ]);
    const env = { OPENROUTER_API_KEY: "a-key" };
    const check = await gateway(["config", "check", at("openrouter.yaml"), "--strict"], env, folder.path);
    expect([check.code, check.err]).toEqual([0, ""]);
  });

  const LIMITS: [name: string, hash: string, limits: object, budget: object | null][] = [
    [
      "no reset: what remains, in all",
      "f01d52606dc8f0a8",
      { monthly_limit_usd: null },
      { cap_usd: 74.5, window: "total" },
    ],
    ["monthly: the limit", "0a11", { monthly_limit_usd: 20, daily_limit_usd: null, budget: null }, null],
    ["weekly: a budget", "0b22", { monthly_limit_usd: null }, { cap_usd: 5, window: "week" }],
    ["daily: the limit", "0c33", { daily_limit_usd: 1.25, monthly_limit_usd: null, budget: null }, null],
    [
      "none, with an end",
      "0d44",
      { daily_limit_usd: null, expires_at: "2100-01-01T00:00:00.000Z", budget: null },
      null,
    ],
    ["a sum of floats, to the nano-dollar", "0f66", {}, { cap_usd: 0.3, window: "total" }],
  ];
  test("makes its keys on one balance", async () => {
    const run = await make("openrouter", "or.jsonl", "export.json");
    expect([run.err, run.code]).toEqual([expect.stringContaining("1 balance with 6 keys"), 0]);
    const balances = new Set(linesOf("or.jsonl").flatMap((line) => line.balance_id ?? []));
    expect(balances.size).toBe(1);
  });
  test.each(LIMITS)("limits: %s", async (_, hash, limits, budget) => {
    const { key_id, balance_id } = lineOf("or.jsonl", `key:${hash}`);
    const { json } = await running.get(`/admin/keys/${key_id}`, ADMIN);
    expect(json).toMatchObject(limits);
    const { data } = (await running.get(`/admin/balances/${balance_id}/budgets`, ADMIN)).json;
    const own = data.find(({ name }: { name: string }) => name === json.budget) ?? null;
    if (budget === null) expect(own).toBeNull();
    else expect(own).toMatchObject(budget);
  });

  test("reads every page of the address, with the management key", async () => {
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: (request) => {
        if (request.headers.get("authorization") !== "Bearer manages")
          return new Response("", { status: 401 });
        const from = Number(new URL(request.url).searchParams.get("offset"));
        return Response.json({ data: EXPORT.data.slice(from, from + 3) });
      },
    });
    const url = `http://127.0.0.1:${server.port}/api/v1/keys`;
    const run = await gateway(
      ["import", "openrouter", url],
      { OPENROUTER_MANAGEMENT_KEY: "manages" },
      folder.path,
    );
    const denied = await gateway(
      ["import", "openrouter", url],
      { OPENROUTER_MANAGEMENT_KEY: "other" },
      folder.path,
    );
    await server.stop(true);
    expect([run.code, run.err]).toEqual([0, expect.stringContaining("1 balance with 6 keys")]);
    expect([denied.code, denied.err]).toEqual([3, expect.stringContaining("answered 401")]);
  });
});
