import { afterAll, beforeAll, expect, test } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { testRuns } from "../gateway/runs.ts";
import { Folder, GatewayProcess, simpleConfig } from "../process/gateway.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("at three gateways on one PostgreSQL", (cluster) => {
  testRuns(3, async () => `store: ${await cluster.database()}`);
});

describeOnPostgres("at three workers on one port", (cluster) => {
  let host: FakeHost;
  let gateway: GatewayProcess;
  let folder: Folder;
  let arrivals = 0;
  const decided: Gate<void> = gate();
  beforeAll(async () => {
    host = await startFakeHost(() => async (wire, seen) => {
      arrivals += 1;
      await decided.passed;
      await json(chatText(["ok"], { input: 10, output: 1 }).whole)(wire, seen);
    });
    const limits = "{ rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null }";
    const more = `store: ${await cluster.database()}\nworkers: 3\ndefaults: { accountless: ${limits} }\ngeneration: { first_token_ms: 60000 }\n`;
    folder = new Folder(simpleConfig([host.port], more));
    gateway = await GatewayProcess.start(folder, {}, ["src/main.ts"]);
  }, 60_000);
  afterAll(async () => {
    decided.open();
    await gateway.kill();
    folder.remove();
    await host.close();
  });

  test("of a thousand concurrent calls of a run with room for ten, ten are served", async () => {
    const { key } = await gateway.keyWith(100);
    const codes = new Map<string, number>();
    let refused = 0;
    const replies = Array.from({ length: 1_000 }, async () => {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "x-gateway-run": "fleet; calls=10" },
        body: JSON.stringify({
          model: "test/model",
          max_tokens: 10,
          messages: [{ role: "user", content: "Hello" }],
        }),
      });
      if (response.status !== 200) refused += 1;
      const { error } = (await response.json()) as { error?: { code: string } };
      const code = `${response.status} ${error?.code ?? ""}`;
      codes.set(code, (codes.get(code) ?? 0) + 1);
    });
    await until(() => refused + arrivals >= 1_000);
    decided.open();
    await Promise.all(replies);
    expect(Object.fromEntries(codes)).toEqual({ "200 ": 10, "429 budget_exhausted": 990 });
  }, 120_000);
});
