import { expect, test } from "bun:test";
import { sse } from "../fakes/behaviours.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { rounds } from "../rounds.ts";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "./gateway.ts";

const UNLIMITED =
  "defaults: { accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null } }\n";
const KILLS = rounds(3, 50);
const STREAMS = 12;

test(`after ${KILLS} kills in the middle of tagged streams, the sums by tag are what was charged in all, and of each cap`, async () => {
  const { events } = chatText(Array(200).fill("word "), { input: 10, output: 200 });
  let arrived = 0;
  const host = await startFakeHost(() => {
    arrived += 1;
    // Every third one ends before the kill.
    const stops = arrived % 3 !== 0;
    return sse(events, { before: (n) => (stops && n === 150 ? new Promise(() => {}) : null) });
  });
  const folder = new Folder(`${simpleConfig([host.port])}${UNLIMITED}`);
  let gateway = await GatewayProcess.start(folder);
  try {
    const { id, key, balance_id, recovery_secret: by } = await gateway.keyWith(100);
    const budget = { name: "each", cap_usd: 50, window: "total", per: "tag:customer" };
    expect((await gateway.post("/v1/budgets", budget, by)).status).toBe(201);
    expect((await gateway.send("PATCH", `/v1/keys/${id}`, { budget: "each" }, by)).status).toBe(200);
    const send = (tags: string) =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": "application/json",
          "x-gateway-tags": tags,
        },
        body: JSON.stringify({
          model: "test/model",
          stream: true,
          max_tokens: 400,
          messages: [{ role: "user", content: "Hello" }],
        }),
      });
    for (let kill = 0; kill < KILLS; kill++) {
      // Its first byte says that its hold is durable.
      const streams = await Promise.all(
        Array.from({ length: STREAMS }, (_, at) => send(`customer=c${at % 4}; kill=k${kill}`)),
      );
      const texts = streams.map((response) => response.text().catch(() => null));
      // Some have ended, and others have not.
      await until(async () => {
        const { json } = await gateway.get(`/admin/balances/${balance_id}/receipts`, ADMIN);
        return (
          json.data.filter(({ tags }: { tags: { kill: string } }) => tags.kill === `k${kill}`).length > 0
        );
      });
      await gateway.kill();
      await Promise.all(texts);
      gateway = await GatewayProcess.start(folder);
    }
    const { json: usage } = await gateway.get("/v1/usage?group_by=tag:customer", key);
    const requests = usage.groups.map(({ value, requests }: { value: string; requests: number }) => [
      value,
      requests,
    ]);
    const each = (KILLS * STREAMS) / 4;
    expect(requests.sort()).toEqual([0, 1, 2, 3].map((at) => [`c${at}`, each]));
    const { json: balance } = await gateway.get(`/admin/balances/${balance_id}`, ADMIN);
    const nano = (usd: number) => Math.round(usd * 1e9);
    const sum = usage.groups.reduce(
      (all: number, { cost_usd }: { cost_usd: number }) => all + nano(cost_usd),
      0,
    );
    expect(sum).toBe(nano(100) - nano(balance.balance_usd));
    expect(sum).toBeGreaterThan(0);
    // What each has spent of its cap is what its receipts say.
    const { values } = (await gateway.get("/v1/budgets/each", by)).json;
    const costs = usage.groups.map(({ value, cost_usd }: { value: string; cost_usd: number }) => ({
      value,
      used_usd: cost_usd,
    }));
    expect(values).toBeArrayOfSize(4);
    expect(values).toEqual(expect.arrayContaining(costs));
    expect((await gateway.audit()).json.ok).toBe(true);
  } finally {
    await gateway.stop();
    await host.close();
    folder.remove();
  }
}, 120_000);
