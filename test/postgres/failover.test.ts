import { afterAll, beforeAll, expect, test } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { type Made, type OpenGateway, open } from "../gateway/open.ts";
import { simpleConfig } from "../process/gateway.ts";
import { describeOnOwnPostgres } from "./fixture.ts";

describeOnOwnPostgres("PostgreSQL fails over to its synchronous replica under load", (cluster) => {
  let host: FakeHost;
  let gateways: OpenGateway[];
  beforeAll(async () => {
    host = await startFakeHost(() => json(chatText(["ok"], { input: 10, output: 1 }).whole));
    await cluster.replicate();
    const config = simpleConfig(
      [host.port],
      `store: ${cluster.url()}\ndefaults: { accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null } }\n`,
    );
    gateways = await Promise.all([0, 1].map(() => open(config)));
  }, 600_000);
  afterAll(async () => {
    for (const gateway of gateways ?? []) await gateway.close();
    await host.close();
  });

  test("no receipt, credit or cap is lost", async () => {
    const keys: Made[] = await Promise.all([0, 1].map((at) => gateways[at]!.key(1)));
    const receipts: string[] = [];
    const statuses = new Set<number>();
    let loading = true;
    const clients = [0, 1, 2, 3].map(async (client) => {
      while (loading) {
        const reply = await gateways[client % 2]!.chat(keys[client >> 1]!.key);
        statuses.add(reply.status);
        if (reply.status === 200) receipts.push(reply.headers.get("x-gateway-receipt")!);
        await Bun.sleep(5);
      }
    });
    await until(() => receipts.length >= 50);
    await cluster.failOver();
    const before = receipts.length;
    await until(() => receipts.length >= before + 50);
    loading = false;
    await Promise.all(clients);
    expect([...statuses].filter((status) => status !== 200 && status !== 500)).toEqual([]);

    for (const gateway of gateways) {
      expect((await gateway.admin("/admin/ledger/audit")).json).toMatchObject({ ok: true, drift_nano: "0" });
    }
    for (const id of receipts) {
      const bodies = await Promise.all(
        keys.map(({ recovery_secret: bearer }) => gateways[0]!.send("GET", `/v1/receipts/${id}`, { bearer })),
      );
      expect(bodies.filter(({ json: receipt }) => receipt.state === "settled")).toHaveLength(1);
    }
  }, 600_000);
});
