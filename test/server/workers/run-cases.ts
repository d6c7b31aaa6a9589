import { afterAll, beforeAll, expect, test } from "bun:test";
import { json } from "../../fakes/behaviours.ts";
import { type Gate, gate } from "../../fakes/gate.ts";
import { type FakeHost, startFakeHost } from "../../fakes/host.ts";
import { chatText } from "../../fakes/transcripts.ts";
import { until } from "../../fakes/until.ts";
import { Folder, GatewayProcess, simpleConfig } from "../../process/gateway.ts";
import { rounds } from "../../rounds.ts";

/** A run's room is that of all workers together, whatever store they share. */
export function testRunsOfWorkers(database: () => Promise<string>): void {
  let host: FakeHost;
  let gateway: GatewayProcess;
  let folder: Folder;
  let arrivals = 0;
  let decided: Gate<void> = gate();
  beforeAll(async () => {
    host = await startFakeHost((request) => async (wire, seen) => {
      arrivals += 1;
      if (request.text().includes("wait")) await decided.passed;
      await json(chatText(["ok"], { input: 10, output: 1 }).whole)(wire, seen);
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
  async function call(key: string, run: string, content: string): Promise<string> {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "x-gateway-run": run, connection: "close" },
      body: JSON.stringify({
        model: "test/model",
        max_tokens: 10,
        messages: [{ role: "user", content }],
      }),
    });
    const { error } = (await response.json()) as { error?: { code: string } };
    return `${response.status} ${error?.code ?? ""}`;
  }

  test(`of ${CALLS} concurrent calls of a run with room for ten, ten are served`, async () => {
    [arrivals, decided] = [0, gate()];
    const { key } = await gateway.keyWith(100);
    const codes = new Map<string, number>();
    let refused = 0;
    const replies = Array.from({ length: CALLS }, async () => {
      const code = await call(key, "fleet; calls=10", "wait");
      if (!code.startsWith("200")) refused += 1;
      codes.set(code, (codes.get(code) ?? 0) + 1);
    });
    await until(() => refused + arrivals >= CALLS);
    decided.open();
    await Promise.all(replies);
    expect(Object.fromEntries(codes)).toEqual({ "200 ": 10, "429 budget_exhausted": CALLS - 10 });
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
