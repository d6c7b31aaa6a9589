import { afterAll, beforeAll, expect, test } from "bun:test";
import { json } from "../../fakes/behaviours.ts";
import { type Gate, gate } from "../../fakes/gate.ts";
import { type FakeHost, startFakeHost } from "../../fakes/host.ts";
import { chatText } from "../../fakes/transcripts.ts";
import { until } from "../../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "../../process/gateway.ts";
import { rounds } from "../../rounds.ts";

/** What each value of a tag may spend is what it may spend at all workers together, whatever store they share. */
export function testTagCapsOfWorkers(database: () => Promise<string>): void {
  let host: FakeHost;
  let gateway: GatewayProcess;
  let folder: Folder;
  let arrivals = 0;
  const decided: Gate<void> = gate();
  beforeAll(async () => {
    host = await startFakeHost(() => async (wire, seen) => {
      arrivals += 1;
      await decided.passed;
      await json(chatText(["ok"], { input: 10, output: 2_000 }).whole)(wire, seen);
    });
    const limits = "{ rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null }";
    const defaults = `defaults: { accountless: ${limits} }\ngeneration: { first_token_ms: 60000 }`;
    folder = new Folder(simpleConfig([host.port], `store: ${await database()}\nworkers: 3\n${defaults}\n`));
    gateway = await GatewayProcess.start(folder);
  }, 600_000);
  afterAll(async () => {
    decided.open();
    await gateway.kill();
    folder.remove();
    await host.close();
  });

  test(`of ${CALLS} concurrent calls of one end user with $1 a day, those are served that fit into it`, async () => {
    const { id, key, balance_id, recovery_secret: by } = await gateway.keyWith(100);
    const budget = { name: "each", cap_usd: 1, window: "day", per: "tag:user" };
    expect((await gateway.send("POST", "/v1/budgets", budget, by)).status).toBe(201);
    expect((await gateway.send("PATCH", `/v1/keys/${id}`, { budget: "each" }, by)).status).toBe(200);
    const codes = new Map<string, number>();
    let refused = 0;
    /** On a connection of its own, so that the kernel picks a worker again. */
    const call = async () => {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "x-gateway-tags": "user=alice", connection: "close" },
        body: JSON.stringify({
          model: "test/model",
          max_tokens: 2_000,
          messages: [{ role: "user", content: "x" }],
        }),
      });
      if (response.status !== 200) refused += 1;
      const { error } = (await response.json()) as { error?: { code: string } };
      const code = `${response.status} ${error?.code ?? ""}`;
      codes.set(code, (codes.get(code) ?? 0) + 1);
    };
    const calls = Array.from({ length: CALLS }, call);
    await until(() => refused + arrivals >= CALLS);
    decided.open();
    await Promise.all(calls);
    const served = codes.get("200 ")!;
    expect(Object.fromEntries(codes)).toEqual({ "200 ": served, "429 budget_exhausted": CALLS - served });
    // The others ship what they spent.
    const alice = async () =>
      (await gateway.get("/v1/budgets/each?value=alice", by)).json.values[0]?.used_usd;
    await until(async () => rounded((await alice()) - served * COST) === 0);
    expect(served * COST).toBeLessThanOrEqual(1);
    expect(1 - served * COST).toBeLessThan(COST);
    const { balance_usd } = (await gateway.get(`/admin/balances/${balance_id}`, ADMIN)).json;
    expect(balance_usd).toBe(rounded(100 - served * COST));
    expect((await gateway.audit()).json).toMatchObject({ ok: true });
  }, 600_000);
}

/** What each call costs, and nearly what it holds. */
const COST = 0.02001;
const rounded = (usd: number) => Math.round(usd * 1e9) / 1e9;

const CALLS = rounds(200, 1_000);
