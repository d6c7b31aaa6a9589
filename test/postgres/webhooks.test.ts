import { expect, test } from "bun:test";
import { WebhookEndpoint } from "../fakes/webhook-endpoint.ts";
import { open } from "../gateway/open.ts";
import { webhookStorm } from "../process/webhook-storm.ts";
import { rounds } from "../rounds.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("a gateway on PostgreSQL", (cluster) => {
  test("reports a limit with the request that reaches it, and credit at its crossing, not with the next request", async () => {
    const endpoint = new WebhookEndpoint();
    const gateway = await open(`store: ${await cluster.database()}
webhooks: { endpoints: [{ url: "${endpoint.url}", secret: "${endpoint.secret}", kinds: [limit.reached] }] }
`);
    const { recovery_secret: bearer } = await gateway.key(1);
    const call = {
      model: "sim/echo",
      max_tokens: 10,
      messages: [{ role: "user", content: "word ".repeat(200) }],
    };
    const make = async (json: object) => (await gateway.send("POST", "/v1/keys", { bearer, json })).json;
    const answer = await gateway.chat((await make({})).key, call);
    const cost: number = (await gateway.receipt(answer, bearer)).json.cost_usd;
    const { id, key } = await make({ daily_limit_usd: Number((2 * cost).toFixed(9)) });
    await gateway.chat(key, call);
    const [reached] = await endpoint.events("limit.reached", 1);
    expect(reached!.data).toMatchObject({ key_id: id, threshold_percent: 50, used_usd: cost });
    await gateway.close();
    await endpoint.stop();
  }, 60_000);
});

describeOnPostgres("three gateways on one PostgreSQL that are killed in turns", (cluster) => {
  test("send each event of low credit under one id, and lose none", async () => {
    const store = await cluster.database();
    const { balances, ...found } = await webhookStorm([store, store, store], rounds(2, 5, 200));
    expect(balances).toBeGreaterThan(0);
    expect(found).toMatchObject({ missing: [], withSeveralIds: 0, drifts: 0 });
  }, 3_600_000);
});
