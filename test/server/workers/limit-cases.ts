import { afterAll, beforeAll, expect, test } from "bun:test";
import { json } from "../../fakes/behaviours.ts";
import { type Gate, gate } from "../../fakes/gate.ts";
import { type FakeHost, startFakeHost } from "../../fakes/host.ts";
import { chatText } from "../../fakes/transcripts.ts";
import { until } from "../../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "../../process/gateway.ts";
import { rounds } from "../../rounds.ts";

/** What a run, or each value of a tag, may use is what it may use at all workers together, whatever store they share. */
export function testLimitsOfWorkers(database: () => Promise<string>): void {
  let host: FakeHost;
  let gateway: GatewayProcess;
  let folder: Folder;
  let arrivals = 0;
  let decided: Gate<void> = gate();
  beforeAll(async () => {
    host = await startFakeHost((request) => async (wire, seen) => {
      arrivals += 1;
      if (request.text().includes("wait")) await decided.passed;
      const output = request.json().max_tokens === LONG ? LONG : 1;
      await json(chatText(["ok"], { input: 10, output }).whole)(wire, seen);
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

  /** On a connection of its own, so that the kernel picks a worker again. */
  async function send(key: string, headers: object, max_tokens: number, content: string): Promise<string> {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, ...headers, connection: "close" },
      body: JSON.stringify({ model: "test/model", max_tokens, messages: [{ role: "user", content }] }),
    });
    const { error } = (await response.json()) as { error?: { code: string } };
    return `${response.status} ${error?.code ?? ""}`;
  }

  const call = (key: string, run: string, content: string) =>
    send(key, { "x-gateway-run": run }, 10, content);

  /** How many of the calls are served; none is answered until all were admitted, or refused for their limit. */
  async function served200(call: () => Promise<string>): Promise<number> {
    [arrivals, decided] = [0, gate()];
    const codes: string[] = [];
    const calls = Array.from({ length: CALLS }, async () => codes.push(await call()));
    await until(() => codes.length + arrivals >= CALLS);
    decided.open();
    await Promise.all(calls);
    const served = codes.filter((code) => code === "200 ").length;
    expect(codes.filter((code) => code === "429 budget_exhausted")).toHaveLength(CALLS - served);
    return served;
  }

  test(`of ${CALLS} concurrent calls of a run with room for ten, ten are served`, async () => {
    const { key } = await gateway.keyWith(100);
    const served = await served200(() => call(key, "fleet; calls=10", "wait"));
    expect(served).toBe(10);
  }, 600_000);

  test(`of ${CALLS} concurrent calls of one end user with $1 a day, those are served that fit into it`, async () => {
    const { id, key, balance_id, recovery_secret: by } = await gateway.keyWith(100);
    const budget = { name: "each", cap_usd: 1, window: "day", per: "tag:user" };
    expect((await gateway.send("POST", "/v1/budgets", budget, by)).status).toBe(201);
    expect((await gateway.send("PATCH", `/v1/keys/${id}`, { budget: "each" }, by)).status).toBe(200);
    const served = await served200(() => send(key, { "x-gateway-tags": "user=alice" }, LONG, "wait"));
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

  test("a worker that served a run applies the limit that another received", async () => {
    const { key } = await gateway.keyWith(100);
    const codes: string[] = [];
    // All of them have served it.
    for (let n = 0; n < 30; n++) codes.push(await call(key, "loose", "Hello"));
    for (let n = 0; n < 10; n++) codes.push(await call(key, "loose; calls=31", "Hello"));
    for (let n = 0; n < 10; n++) codes.push(await call(key, "loose", "Hello"));
    expect(codes).toEqual([...Array(31).fill("200 "), ...Array(19).fill("429 budget_exhausted")]);
  }, 600_000);

  test("all workers go by what its owner sets or ends", async () => {
    const { key, recovery_secret } = await gateway.keyWith(100);
    const codes = async (run: string) => {
      const found = new Map<string, number>();
      for (let n = 0; n < 20; n++) {
        const code = await call(key, run, "Hello");
        found.set(code, (found.get(code) ?? 0) + 1);
      }
      return Object.fromEntries(found);
    };
    const [served, refused] = ["200 ", "429 budget_exhausted"];
    expect(await codes("job; calls=10")).toEqual({ [served]: 10, [refused]: 10 });
    await gateway.send("PATCH", "/v1/runs/job", { calls: 15 }, recovery_secret);
    expect(await codes("job")).toEqual({ [served]: 5, [refused]: 15 });
    await gateway.send("DELETE", "/v1/runs/job", undefined, recovery_secret);
    expect(await codes("job; calls=4")).toEqual({ [served]: 4, [refused]: 16 });
  }, 600_000);
}

const CALLS = rounds(200, 1_000);
const LONG = 2_000;
/** What each long call costs, and nearly what it holds. */
const COST = 0.02001;
const rounded = (usd: number) => Math.round(usd * 1e9) / 1e9;
